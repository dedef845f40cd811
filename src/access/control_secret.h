// ControlSecret: required to change a node over HTTP and to see its PINs, whatever the caller's
// address. 256 random bits in a file of the node's folder (0600), made at its first start and
// readable only by the node's user. The command line sends it as a header, but only after the node
// has proved that it has it too, so that another user's program on the node's port learns nothing.
// Values; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/crypto/secrets.h"
#include "base/result.h"

namespace lockstep {

inline constexpr const char* kControlSecretFile = "control_secret";
inline constexpr std::string_view kControlHeader = "x-lockstep-control";

class ControlSecret {
 public:
  // For a node: makes the folder and the secret if they do not exist. kInvalidArgument if others
  // can read it or own the folder, kCorrupt if it is malformed; both say what to do.
  static Result<ControlSecret> open(const std::filesystem::path& folder);
  // For a command: kNotFound if no node has run there; else as open().
  static Result<ControlSecret> read(const std::filesystem::path& folder);

  const std::string& text() const { return text_; }
  // Takes constant time for every text.
  bool is(std::string_view text) const;
  // Proves that the node at this port has the secret: hex digits for a nonce made by the caller.
  Result<std::string> proof(std::string_view nonce, uint16_t port) const;
  // 64 hex digits.
  static bool is_nonce(std::string_view text);

 private:
  explicit ControlSecret(std::string text) : text_(std::move(text)) {}

  std::string text_;  // 64 hex digits
};

}  // namespace lockstep
