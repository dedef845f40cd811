// LinkUse: what the link to one peer turned out to be, for a group's status. It differs from what
// was requested (LinkOptions) if RDMA was wanted but is not available.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

enum class LinkPath { kShm, kTcp, kVerbsRc, kVerbsUc };

struct LinkUse {
  int peer = 0;
  LinkPath path = LinkPath::kShm;  // with several rails: RDMA if one of them uses it
  int rails = 1;
  int tcp_rails = 0;  // of `rails` when RDMA is used, those that stayed on TCP
  bool is_encrypted = false;
  std::string reason;  // why TCP replaces RDMA; empty: the link is as requested
  // The numeric addresses of both ends, of the first rail; empty with shared memory.
  std::string own_host{};
  std::string peer_host{};
  std::string device{};        // this end's RDMA device, of the first rail with one
  std::string network_note{};  // why no data network is used, and what to do; empty: none is missed
};

Result<LinkPath> parse_link_path(std::string_view name);
std::string_view link_path_name(LinkPath path);

}  // namespace lockstep
