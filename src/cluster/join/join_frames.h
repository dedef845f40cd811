// Messages between the two ends of a join (cluster/join/join_host.h, cluster/join/join_cluster.h),
// as JSON in frames, and the proofs in them. Every proof includes the session's secret, so it
// convinces only the other end of the TLS session in which it was made. Any thread.
//
//   joiner: "LSG1" 'J' {"name", "version", "oldest", "newest", "with": "pin"}
//   member: {"state": "pin", "name", "cluster"}      it shows the PIN
//   joiner: {"share"}                                SPAKE2 over the PIN (base/crypto/spake2.h), as
//   A member: {"share"}                                the PIN is used up joiner: {"confirmation"}
//   member: {"confirmation", "key"}                  the cluster's key
//
//   joiner: "LSG1" 'J' {..., "with": "token", "expires", "number", "confirmation"}
//   member: {"confirmation", "key", "name", "cluster"}
//
//   member, at any time: {"state": "refused", "reason"}
#pragma once

#include <string>
#include <string_view>

#include "base/crypto/key_pair.h"
#include "base/crypto/secrets.h"
#include "base/crypto/spake2.h"
#include "base/result.h"
#include "cluster/join/join_token.h"
#include "cluster/protocol.h"

namespace lockstep {

struct JoinRequestFrame {
  std::string name;
  std::string version;
  ProtocolRange protocols = kProtocols;
  bool with_token = false;
  uint64_t token_expires_s = 0;  // with a token
  std::array<std::byte, 8> token_number{};
  Digest token_confirmation{};
};
std::string encode_join_request(
    const JoinRequestFrame& request);  // with the prefix of first frames
Result<JoinRequestFrame> parse_join_request(std::string_view frame);

// Any frame after the first; absent fields are empty.
struct JoinFrame {
  std::string state = {};
  std::string reason = {};
  std::string name = {};                      // of the member
  std::string cluster = {};                   // its cluster's id in hex
  std::string share = {}, confirmation = {};  // bytes
  std::string key = {};                       // text of a ClusterKey
};
std::string encode_join_frame(const JoinFrame& frame);
Result<JoinFrame> parse_join_frame(std::string_view frame);

// The two ends of a session's run of SPAKE2.
Result<Spake2> start_pin_proof(Spake2::Side side, const PublicKey& joiner, const PublicKey& member,
                               const Digest& session_secret, std::string_view pin);
Result<Digest> token_proof(const Digest& token_secret, bool of_joiner,
                           const Digest& session_secret);

}  // namespace lockstep
