#include "transport/link_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

namespace lockstep {
namespace {

Error refuse(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

}  // namespace

bool is_joined(const LinkOptions& link, int size, int a, int b) {
  if (!is_joined(link.topology, size, a, b)) return false;
  if (link.stages <= 1) return true;
  const int ranks = size / link.stages;
  const int low = std::min(a, b), high = std::max(a, b);
  const bool is_last_first = low == 0 && high == size - ranks;
  return low / ranks == high / ranks || high - low == ranks || is_last_first;
}

Status check_link_options(const LinkOptions& options) {
  const bool is_shm = options.kind == LinkKind::kShm;
  if (options.rails < 1 || options.rails > LinkOptions::kRailsMax) {
    return refuse(fmt::format("{} rails were requested; 1 to {} are possible", options.rails,
                              LinkOptions::kRailsMax));
  }
  if (is_shm && options.rails > 1) {
    return refuse("shared memory has no rails; leave --rails out, or use --link tcp");
  }
  if (options.stages < 1 || (options.stages > 1 && options.topology != Topology::kMesh)) {
    return refuse("stages of a pipeline have links of their own; leave --topology out");
  }
  if (options.encrypts && options.kind != LinkKind::kTcp) {
    return refuse(fmt::format("--encrypt is for --link tcp; {} is never encrypted",
                              link_kind_name(options.kind)));
  }
  if (options.encrypts && options.plain) {
    return refuse("links are either encrypted or plain, not both");
  }
  if (options.delay_us < 0 || options.delay_us > LinkOptions::kDelayMaxUs) {
    return refuse(fmt::format("a link delay of {} us was requested; 0 to {} are possible",
                              options.delay_us, LinkOptions::kDelayMaxUs));
  }
  if (options.gbit_s != 0 && !(options.gbit_s >= LinkOptions::kGbitMin)) {
    return refuse(
        fmt::format("links of {} Gbit/s were requested; 0 (no limit) or at least {} is possible",
                    options.gbit_s, LinkOptions::kGbitMin));
  }
  return Ok{};
}

}  // namespace lockstep
