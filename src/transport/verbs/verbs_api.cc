#include "transport/verbs/verbs_api.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <dlfcn.h>

#include <cstdlib>

namespace lockstep {
namespace {

#ifdef __APPLE__
constexpr const char* kSystemLibrary = "librdma.dylib";
#else
constexpr const char* kSystemLibrary = "libibverbs.so.1";
#endif

// Looks up functions and remembers the first that is missing.
struct Symbols {
  void* library;
  const char* missing = nullptr;

  template <class Function>
  void find(const char* name, Function& function) {
    void* const symbol = ::dlsym(library, name);
    if (symbol == nullptr && missing == nullptr) missing = name;
    function = reinterpret_cast<Function>(symbol);
  }
};

#ifdef __linux__
// A network card lists an address twice, for RoCE v1 and for v2, which are incompatible.
bool ask_roce_v2(const VerbsApi& api, ibv_context* context, uint8_t port, int index) {
  using QueryGidEx = int (*)(ibv_context*, uint32_t, uint32_t, ibv_gid_entry*, uint32_t, size_t);
  ibv_gid_entry entry{};
  const auto query = reinterpret_cast<QueryGidEx>(api.query_gid_ex);
  return query(context, port, static_cast<uint32_t>(index), &entry, 0, sizeof(entry)) == 0 &&
         entry.gid_type == IBV_GID_TYPE_ROCE_V2;
}
#endif

}  // namespace

std::string verbs_library_name() {
  const char* const named = std::getenv("LOCKSTEP_VERBS_LIBRARY");
  return named != nullptr && *named != '\0' ? named : kSystemLibrary;
}

Result<VerbsApi> load_verbs(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "the RDMA library " + library + " cannot be loaded: " + ::dlerror()};
  }
  VerbsApi api;
  Symbols symbols{handle};
  symbols.find("ibv_get_device_list", api.get_device_list);
  symbols.find("ibv_free_device_list", api.free_device_list);
  symbols.find("ibv_get_device_name", api.get_device_name);
  symbols.find("ibv_open_device", api.open_device);
  symbols.find("ibv_close_device", api.close_device);
  symbols.find("ibv_query_device", api.query_device);
  symbols.find("ibv_query_port", api.query_port);
  symbols.find("ibv_query_gid", api.query_gid);
  symbols.find("ibv_alloc_pd", api.alloc_pd);
  symbols.find("ibv_dealloc_pd", api.dealloc_pd);
  symbols.find("ibv_reg_mr", api.reg_mr);
  symbols.find("ibv_dereg_mr", api.dereg_mr);
  symbols.find("ibv_create_cq", api.create_cq);
  symbols.find("ibv_destroy_cq", api.destroy_cq);
  symbols.find("ibv_create_qp", api.create_qp);
  symbols.find("ibv_modify_qp", api.modify_qp);
  symbols.find("ibv_destroy_qp", api.destroy_qp);
  if (symbols.missing != nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "the RDMA library " + library + " has no " + symbols.missing};
  }
#ifdef __linux__
  api.query_gid_ex = ::dlsym(handle, "_ibv_query_gid_ex");
  if (api.query_gid_ex != nullptr) api.is_roce_v2 = ask_roce_v2;
#endif
  return api;
}

}  // namespace lockstep

#endif
