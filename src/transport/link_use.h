// LinkUse: what the link to one peer is in the end, for whoever asks for a group's state. It
// differs from what was asked for (LinkOptions) where RDMA was wanted and cannot be had.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

enum class LinkPath { kShm, kTcp, kVerbsRc, kVerbsUc };

struct LinkUse {
  int peer = 0;
  LinkPath path = LinkPath::kShm;  // of several rails RDMA where one of them has it
  int rails = 1;
  int tcp_rails = 0;  // of `rails` over RDMA, those that stayed on TCP
  bool is_encrypted = false;
  std::string reason;  // why RDMA was wanted and TCP is used; empty: it is what was wanted
};

Result<LinkPath> parse_link_path(std::string_view name);
std::string_view link_path_name(LinkPath path);

}  // namespace lockstep
