#include "cluster/join/join_token.h"

#include <algorithm>
#include <vector>

#include "base/byte_text.h"
#include "base/crypto/hasher.h"
#include "base/hex.h"

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "lockstep-join-";
constexpr size_t kBodyBytes = ClusterId::kBytes + 8 + 8 + std::tuple_size_v<Digest>;
constexpr size_t kCheckBytes = 4;  // detects an incomplete token

std::vector<std::byte> expiry_bytes(uint64_t expires_s) {
  std::vector<std::byte> bytes;
  append_number(bytes, expires_s);
  return bytes;
}

}  // namespace

Result<Digest> join_token_secret(const ClusterKey& key, uint64_t expires_s,
                                 const std::array<std::byte, 8>& number) {
  return hmac_sha256(TRY(key.derive("join token")), {expiry_bytes(expires_s), number});
}

Result<JoinToken> make_join_token(const ClusterKey& key, uint64_t expires_s) {
  JoinToken token;
  token.cluster = key.id();
  token.expires_s = expires_s;
  TRY(fill_random(token.number));
  token.secret = TRY(join_token_secret(key, expires_s, token.number));
  return token;
}

std::string JoinToken::text() const {
  std::vector<std::byte> body;
  append_bytes(body, cluster.bytes());
  append_number(body, expires_s);
  append_bytes(body, number);
  append_bytes(body, secret);
  const Digest check = sha256(body);
  append_bytes(body, std::span(check).first(kCheckBytes));
  return std::string(kPrefix) + to_hex(body);
}

Result<JoinToken> parse_join_token(std::string_view text) {
  const Error bad{ErrorCode::kInvalidArgument,
                  "this is not a complete join token: create one with `lockstep cluster token` on "
                  "a machine of the cluster and copy all of it"};
  if (!text.starts_with(kPrefix)) return bad;
  std::array<std::byte, kBodyBytes + kCheckBytes> bytes{};
  if (!from_hex(text.substr(kPrefix.size()), bytes)) return bad;
  const auto body = std::span<const std::byte>(bytes).first(kBodyBytes);
  const Digest check = sha256(body);
  if (!std::equal(bytes.begin() + kBodyBytes, bytes.end(), check.begin())) return bad;
  ByteReader reader(body);
  JoinToken token;
  std::array<std::byte, ClusterId::kBytes> cluster{};
  reader.fill(cluster);
  token.cluster = ClusterId(cluster);
  token.expires_s = reader.number<uint64_t>();
  reader.fill(token.number);
  reader.fill(token.secret);
  return token;
}

}  // namespace lockstep
