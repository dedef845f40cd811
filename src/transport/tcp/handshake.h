// The first bytes on a connection between two ranks: which rank of which group, on which rail. Each
// end proves that it knows the group's token, which is never sent:
//   caller:   Hello, with a proof over itself     (a stranger gets no answer)
//   listener: Hello, with a proof over both       (of the caller's nonce: no replay)
//   caller:   a proof over both                   (of the listener's nonce)
// Proofs are HMAC-SHA256 with the token. An encrypted connection takes its keys from the token and
// both Hellos (HKDF), so each has its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/crypto/secrets.h"
#include "base/files/unique_fd.h"
#include "base/result.h"
#include "transport/link_keys.h"
#include "transport/tcp/rendezvous.h"

namespace lockstep {

// Little-endian on the wire. Magic and version have the same place in every version.
struct Hello {
  static constexpr uint64_t kMagic = 0x7065'7473'6b63'6f6c;  // "lockstep"
  static constexpr uint32_t kVersion = 2;
  static constexpr size_t kPrefixBytes = 12;
  static constexpr uint32_t kEncrypts = 1;  // flags
  static constexpr uint32_t kFastAes = 2;

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t epoch = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint16_t rail = 0;   // this connection's number
  uint16_t rails = 1;  // connections of each pair
  uint32_t flags = 0;
  Digest nonce{};
  Digest proof{};
};
static_assert(sizeof(Hello) == 96);

// One end of one connection, on a non-blocking socket.
class Handshake {
 public:
  struct Options {
    int rank = 0;
    int size = 0;
    uint32_t epoch = 0;
    GroupToken token{};
    int rails = 1;
    bool encrypts = false;
  };

  // The end that connects, to reach `peer` on `rail`.
  static Handshake call(const Options& options, int peer, int rail);
  // The end that accepts: only higher ranks call.
  static Handshake answer(const Options& options);

  // Does what can be done without waiting; true once both ends have proved themselves. After an
  // error the connection must be closed; kUnsupported means that a retry cannot help.
  Result<bool> advance(int fd);
  // Whether that error met a rank of another epoch. It need not be authentic: each epoch has a new
  // token, so such a rank could not prove anything.
  bool is_late() const;
  // The other end knows the group's token, so its statements can be trusted.
  bool is_proved() const { return is_proved_; }

  // Once it is done:
  int peer() const { return peer_; }
  int rail() const { return rail_; }
  // None if the connection is not encrypted.
  Result<std::optional<LinkKeys>> keys() const;

 private:
  enum class State { kStart, kAwaitingHello, kAwaitingProof, kDone };

  Handshake(const Options& options, bool is_caller) : options_(options), is_caller_(is_caller) {}
  Result<bool> receive(int fd, std::span<std::byte> all);
  Result<bool> receive_hello(int fd);
  Status introduce(int fd);
  Status check_hello();
  Status check_agreement() const;
  Result<Digest> hello_proof(bool of_caller) const;
  Result<Digest> final_proof() const;

  const Hello& caller_hello() const { return is_caller_ ? own_ : other_; }
  const Hello& listener_hello() const { return is_caller_ ? other_ : own_; }

  Options options_;
  bool is_caller_;
  State state_ = State::kStart;
  int peer_ = -1;
  int rail_ = 0;
  bool is_proved_ = false;
  Hello own_;
  Hello other_;
  Digest proof_{};  // the caller's final proof, as it arrives
  size_t received_ = 0;
};

// A socket that is connecting, or connected, without blocking. `from`: the numeric address of this
// machine to call from, if it has several; ignored if of another family, and empty leaves the
// choice to the system.
Result<UniqueFd> start_connect(const TcpAddress& address, const std::string& from = {});
// 0, or the error number of the failed connect. For a socket that poll() reports as writable.
int connect_error(int fd);

}  // namespace lockstep
