#include "transport/link_use.h"

#include "base/named_values.h"

namespace lockstep {
namespace {

constexpr NamedValues<LinkPath, 4> kLinkPathNames{{
    {LinkPath::kShm, "shm"},
    {LinkPath::kTcp, "tcp"},
    {LinkPath::kVerbsRc, "verbs-rc"},
    {LinkPath::kVerbsUc, "verbs-uc"},
}};

}  // namespace

Result<LinkPath> parse_link_path(std::string_view name) {
  return value_named(kLinkPathNames, name, "path of a link");
}

std::string_view link_path_name(LinkPath path) {
  return name_in(kLinkPathNames, path);
}

}  // namespace lockstep
