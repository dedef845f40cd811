#include "transport/link_kind.h"

#include <array>
#include <string>
#include <utility>

namespace lockstep {
namespace {

constexpr std::array<std::pair<LinkKind, std::string_view>, 3> kNames{{
    {LinkKind::kShm, "shm"},
    {LinkKind::kTcp, "tcp"},
    {LinkKind::kVerbs, "verbs"},
}};

}  // namespace

Result<LinkKind> parse_link_kind(std::string_view name) {
  for (const auto& [kind, known] : kNames) {
    if (name == known) return kind;
  }
  return Error{ErrorCode::kInvalidArgument,
               "'" + std::string(name) + "' is no kind of link; there are shm, tcp and verbs"};
}

std::string_view link_kind_name(LinkKind kind) {
  for (const auto& [known, name] : kNames) {
    if (kind == known) return name;
  }
  return "";
}

}  // namespace lockstep
