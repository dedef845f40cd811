// ControlSecret: required to change a node over HTTP and to see its PINs, whatever the caller's
// address. 256 random bits in a file of the node's folder (0600), made at its first start and
// readable only by the node's user. Nobody sends it: the command line asks the node for a number
// that is accepted once, checks that a holder of the secret made it, and sends a MAC over the
// number and the whole request. Another user's program that took the node's port and passes
// everything on to the node thereby gains this one request, which its sender wants anyway. Values;
// any thread.
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

  // A request as its sender and the node see it.
  struct Request {
    uint16_t port;               // the node's
    std::string_view method;     // "POST"
    std::string_view target;     // path and query
    std::string_view body_hash;  // body_hash_of()
    std::string_view node_nonce;
  };

  const std::string& text() const { return text_; }
  // Proves that the node at this port has the secret and made `node_nonce`: hex digits for a nonce
  // made by the caller.
  Result<std::string> proof(std::string_view nonce, std::string_view node_nonce,
                            uint16_t port) const;
  // The value of kControlHeader: the node's nonce, the body's hash and a MAC, separated by blanks.
  Result<std::string> header(const Request& request) const;
  // Whether the header is that of the request, whose nonce and hash are the header's own. Takes the
  // same time for every MAC.
  bool is_header_of(std::string_view header, uint16_t port, std::string_view method,
                    std::string_view target) const;
  // The header's parts; empty if it is malformed.
  static std::string_view nonce_in(std::string_view header);
  static std::string_view body_hash_in(std::string_view header);
  static std::string body_hash_of(std::string_view body);  // SHA-256 as hex digits
  // 64 hex digits.
  static bool is_nonce(std::string_view text);

 private:
  explicit ControlSecret(std::string text) : text_(std::move(text)) {}

  std::string text_;  // 64 hex digits
};

}  // namespace lockstep
