#include "transport/link_kind.h"

#include <string>

namespace lockstep {

Result<LinkKind> parse_link_kind(std::string_view name) {
  if (name == "shm") return LinkKind::kShm;
  if (name == "tcp") return LinkKind::kTcp;
  return Error{ErrorCode::kInvalidArgument,
               "'" + std::string(name) + "' is no kind of link; there are shm and tcp"};
}

std::string_view link_kind_name(LinkKind kind) {
  return kind == LinkKind::kShm ? "shm" : "tcp";
}

}  // namespace lockstep
