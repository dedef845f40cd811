// Join tokens: a text that lets its holder join until it expires, for machines without a screen
// (`lockstep cluster token`, `--join HOST --token T`). It is derived from the cluster key, which
// cannot be recovered from it, and is worthless once it has expired. Until then it may be used more
// than once. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/crypto/secrets.h"
#include "base/result.h"
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
// kInvalidArgument if the text is incomplete or changed.
Result<JoinToken> parse_join_token(std::string_view text);
// The secret that a token with this number must have.
Result<Digest> join_token_secret(const ClusterKey& key, uint64_t expires_s,
                                 const std::array<std::byte, 8>& number);

}  // namespace lockstep
