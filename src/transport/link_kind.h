// The kinds of links that a user can ask for: --link shm, tcp or verbs.
#pragma once

#include <string_view>

#include "base/result.h"

namespace lockstep {

enum class LinkKind { kShm, kTcp, kVerbs };

Result<LinkKind> parse_link_kind(std::string_view name);
std::string_view link_kind_name(LinkKind kind);

}  // namespace lockstep
