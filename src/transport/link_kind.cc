#include "transport/link_kind.h"

#include "base/named_values.h"

namespace lockstep {
namespace {

constexpr NamedValues<LinkKind, 3> kLinkKindNames{{
    {LinkKind::kShm, "shm"},
    {LinkKind::kTcp, "tcp"},
    {LinkKind::kVerbs, "verbs"},
}};

}  // namespace

Result<LinkKind> parse_link_kind(std::string_view name) {
  return value_named(kLinkKindNames, name, "kind of link");
}

std::string_view link_kind_name(LinkKind kind) {
  return name_in(kLinkKindNames, kind);
}

}  // namespace lockstep
