#include "transport/verbs/verbs_report.h"

#include "transport/verbs/verbs_api.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace lockstep {
namespace {

constexpr int kReportedGidsMax = 1024;

// A RoCE GID is an IPv6 address, or an IPv4 one mapped into it. Empty: not set.
std::string address_text(const ibv_gid& gid) {
  in6_addr address{};
  std::memcpy(&address, gid.raw, sizeof(address));
  if (IN6_IS_ADDR_UNSPECIFIED(&address)) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&address);
  ::inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? gid.raw + 12 : gid.raw, text.data(), text.size());
  return text.data();
}

std::vector<std::string> addresses_of(const VerbsApi& api, ibv_context* context, uint8_t port,
                                      int gid_count) {
  std::vector<std::string> found;
  for (int index = 0; index < std::min(gid_count, kReportedGidsMax); ++index) {
    ibv_gid gid{};
    if (api.query_gid(context, port, index, &gid) != 0) continue;
    const std::string address = address_text(gid);
    if (address.empty() || std::find(found.begin(), found.end(), address) != found.end()) continue;
    found.push_back(address);
  }
  return found;
}

void report_device(const VerbsApi& api, ibv_device* device, VerbsReport& report) {
  const std::string name = api.get_device_name(device);
  const auto close = [&](ibv_context* opened) { api.close_device(opened); };
  const std::unique_ptr<ibv_context, decltype(close)> context(api.open_device(device), close);
  ibv_device_attr attributes{};
  if (!context || api.query_device(context.get(), &attributes) != 0) {
    report.problem = "the RDMA device " + name + " cannot be opened: " + std::strerror(errno);
    return;
  }
  for (uint8_t port = 1; port <= std::max<uint8_t>(attributes.phys_port_cnt, 1); ++port) {
    ibv_port_attr state{};
    if (api.query_port(context.get(), port, &state) != 0) continue;
    report.ports.push_back(
        {.device = name,
         .port = port,
         .is_active = state.state == IBV_PORT_ACTIVE,
         .is_ethernet = state.link_layer == IBV_LINK_LAYER_ETHERNET,
         .addresses = addresses_of(api, context.get(), port, state.gid_tbl_len)});
  }
}

}  // namespace

VerbsReport report_verbs() {
  VerbsReport report{.library = verbs_library_name()};
  const auto api = load_verbs(report.library);
  if (!api.ok()) {
    report.problem = api.error().message;
    return report;
  }
  report.has_library = true;
  int count = 0;
  ibv_device** const devices = api.value().get_device_list(&count);
  if (devices == nullptr) return report;  // there are none without the system's part
  for (int i = 0; i < count; ++i) report_device(api.value(), devices[i], report);
  api.value().free_device_list(devices);
  return report;
}

}  // namespace lockstep

#else

namespace lockstep {

VerbsReport report_verbs() {
  return {.problem = "this lockstep was built without RDMA"};
}

}  // namespace lockstep

#endif
