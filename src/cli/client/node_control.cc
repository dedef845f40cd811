#include "cli/client/node_control.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "access/control_secret.h"
#include "access/host_names.h"
#include "base/crypto/secrets.h"
#include "base/hex.h"
#include "cluster/identity.h"
#include "net/http/http_client.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kProofTimeout{5'000};
constexpr size_t kNonceBytes = 32;

Result<ControlSecret> own_secret() {
  return ControlSecret::read(TRY(Identity::default_folder()));
}

// Whether the node at the port knows the secret too.
Result<bool> has_proof(const NodeFlags& flags, const ControlSecret& secret) {
  std::array<std::byte, kNonceBytes> bytes{};
  TRY(fill_random(bytes));
  const std::string nonce = to_hex(bytes);
  const auto port = static_cast<uint16_t>(flags.port);
  const HttpAnswer answer = TRY(call_http({.host = flags.host,
                                           .port = port,
                                           .target = "/control/proof?nonce=" + nonce,
                                           .timeout = kProofTimeout}));
  const auto json = parse_json(answer.body);
  if (answer.status != 200 || !json.ok()) return false;
  const std::string wanted = TRY(secret.proof(nonce, port));
  const std::string told = text_in(json.value(), "proof");
  return is_same_secret(std::as_bytes(std::span(wanted)), std::as_bytes(std::span(told)));
}

}  // namespace

NodeControl control_of(const NodeFlags& flags) {
  const bool is_here = flags.host == "::1" || is_loopback_authority(flags.host);
  if (!is_here) return {std::nullopt, "it runs on another machine"};
  const auto secret = own_secret();
  if (!secret.ok()) return {std::nullopt, secret.error().message};
  const auto proved = has_proof(flags, secret.value());
  if (proved.ok() && proved.value()) return {secret.value().text(), ""};
  return {std::nullopt, fmt::format("the node at port {} is not the one of this user's folder {}",
                                    flags.port, Identity::default_folder().value().string())};
}

}  // namespace lockstep
