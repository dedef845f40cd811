// The functions of the RDMA library (libibverbs, on macOS librdma), which is loaded on first use
// and is not a dependency of the program. Only the verbs_* files see the library's types; the rest
// of lockstep uses transport/verbs/verbs_upgrade.h. If a build lacks the library's header,
// LOCKSTEP_HAS_VERBS is not defined and there are no links of this kind.
#pragma once

#if __has_include(<infiniband/verbs.h>) && !defined(LOCKSTEP_WITHOUT_VERBS)
#define LOCKSTEP_HAS_VERBS 1

#include <infiniband/verbs.h>
// rdma-core defines macros for these two that access structures of one library version.
#undef ibv_query_port
#undef ibv_reg_mr

#include <string>

#include "base/result.h"

namespace lockstep {

// Posting and polling go through ibv_context::ops, as the header's inline functions do.
struct VerbsApi {
  ibv_device** (*get_device_list)(int*) = nullptr;
  void (*free_device_list)(ibv_device**) = nullptr;
  const char* (*get_device_name)(ibv_device*) = nullptr;
  ibv_context* (*open_device)(ibv_device*) = nullptr;
  int (*close_device)(ibv_context*) = nullptr;
  int (*query_device)(ibv_context*, ibv_device_attr*) = nullptr;
  int (*query_port)(ibv_context*, uint8_t, ibv_port_attr*) = nullptr;
  int (*query_gid)(ibv_context*, uint8_t, int, ibv_gid*) = nullptr;
  ibv_pd* (*alloc_pd)(ibv_context*) = nullptr;
  int (*dealloc_pd)(ibv_pd*) = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, size_t, int) = nullptr;
  int (*dereg_mr)(ibv_mr*) = nullptr;
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int) = nullptr;
  int (*destroy_cq)(ibv_cq*) = nullptr;
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*) = nullptr;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int) = nullptr;
  int (*destroy_qp)(ibv_qp*) = nullptr;
  // Whether a GID is for RoCE v2; null if the library cannot tell.
  bool (*is_roce_v2)(const VerbsApi&, ibv_context*, uint8_t port, int index) = nullptr;
  void* query_gid_ex = nullptr;
};

// The system's library, or the one named by the environment variable LOCKSTEP_VERBS_LIBRARY.
std::string verbs_library_name();
// Loads it for the rest of the process. kUnsupported says in one sentence why it is missing.
Result<VerbsApi> load_verbs(const std::string& library);

}  // namespace lockstep

#endif
