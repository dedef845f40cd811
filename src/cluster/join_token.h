// Join tokens: a text that lets whoever has it join until it expires, for machines without a screen
// (`lockstep cluster token`, `--join HOST --token T`). It is made from the cluster key and is not
// the key: it cannot be turned into one, and is worth nothing once it has expired. It may be used
// more than once until then. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secrets.h"
#include "cluster/cluster_key.h"

namespace lockstep {

struct JoinToken {
  ClusterId cluster;
  uint64_t expires_s = 0;  // since 1970
  std::array<std::byte, 8> number{};
  Digest secret{};  // a MAC of the above by a key of the cluster

  std::string text() const;
};

Result<JoinToken> make_join_token(const ClusterKey& key, uint64_t expires_s);
// kInvalidArgument if the text is not whole.
Result<JoinToken> parse_join_token(std::string_view text);
// What the token with this number must have as its secret.
Result<Digest> join_token_secret(const ClusterKey& key, uint64_t expires_s,
                                 const std::array<std::byte, 8>& number);

}  // namespace lockstep
