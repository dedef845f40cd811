#include "transport/link_options.h"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace lockstep {
namespace {

Error refuse(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message)};
}

}  // namespace

Status check_link_options(const LinkOptions& options) {
  const bool is_shm = options.kind == LinkKind::kShm;
  if (options.rails < 1 || options.rails > LinkOptions::kRailsMax) {
    return refuse(fmt::format("{} rails are asked for; 1 to {} are possible", options.rails,
                              LinkOptions::kRailsMax));
  }
  if (is_shm && options.rails > 1) {
    return refuse("shared memory has no rails; leave --rails out, or use --link tcp");
  }
  if (options.encrypts && options.kind != LinkKind::kTcp) {
    return refuse(fmt::format("--encrypt is for --link tcp; {} is never encrypted",
                              link_kind_name(options.kind)));
  }
  if (options.encrypts && options.plain) {
    return refuse("links are either encrypted or plain, not both");
  }
  if (options.delay_us < 0 || options.delay_us > LinkOptions::kDelayMaxUs) {
    return refuse(fmt::format("a link delay of {} us is asked for; 0 to {} are possible",
                              options.delay_us, LinkOptions::kDelayMaxUs));
  }
  if (options.gbit_s != 0 && !(options.gbit_s >= LinkOptions::kGbitMin)) {
    return refuse(
        fmt::format("links of {} Gbit/s are asked for; 0 (no limit) or at least {} is "
                    "possible",
                    options.gbit_s, LinkOptions::kGbitMin));
  }
  return Ok{};
}

}  // namespace lockstep
