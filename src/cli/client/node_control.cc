#include "cli/client/node_control.h"

#include <fmt/core.h>

#include <utility>

#include "access/control_secret.h"
#include "access/host_names.h"
#include "base/byte_text.h"
#include "base/crypto/secrets.h"
#include "cluster/identity.h"
#include "net/http/http_client.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kProofTimeout{5'000};
constexpr size_t kNonceBytes = 32;

Result<ControlSecret> own_secret() {
  return ControlSecret::read(TRY(Identity::default_folder()));
}

// A nonce of the node for one request; nullopt if the program at the port cannot prove that a node
// with the same secret made it for this port.
Result<std::optional<std::string>> node_nonce(const NodeFlags& flags, const ControlSecret& secret) {
  const std::string nonce = TRY(random_hex(kNonceBytes));
  const auto port = static_cast<uint16_t>(flags.port);
  const HttpAnswer answer = TRY(call_http({.host = flags.host,
                                           .port = port,
                                           .target = "/control/proof?nonce=" + nonce,
                                           .timeout = kProofTimeout}));
  const auto json = parse_untrusted_json(answer.body);
  if (answer.status != 200 || !json.ok()) return std::optional<std::string>();
  const std::string offered = text_in(json.value(), "nonce");
  const std::string wanted = TRY(secret.proof(nonce, offered, port));
  const std::string told = text_in(json.value(), "proof");
  const bool is_proved = is_same_secret(bytes_of(wanted), bytes_of(told));
  return is_proved ? std::optional(offered) : std::nullopt;
}

}  // namespace

NodeControl control_of(const NodeFlags& flags, const HttpCall& call) {
  const bool is_here = flags.host == "::1" || is_loopback_authority(flags.host);
  if (!is_here) return {std::nullopt, "it runs on another machine"};
  const auto secret = own_secret();
  if (!secret.ok()) return {std::nullopt, secret.error().message};
  const auto nonce = node_nonce(flags, secret.value());
  if (nonce.ok() && nonce.value()) {
    const std::string body_hash = ControlSecret::body_hash_of(call.body);
    auto header = secret.value().header({.port = static_cast<uint16_t>(flags.port),
                                         .method = call.method,
                                         .target = call.target,
                                         .body_hash = body_hash,
                                         .node_nonce = *nonce.value()});
    if (header.ok()) return {std::move(header.value()), ""};
    return {std::nullopt, header.error().message};
  }
  return {std::nullopt, fmt::format("the node at port {} is not the one of this user's folder {}",
                                    flags.port, Identity::default_folder().value().string())};
}

}  // namespace lockstep
