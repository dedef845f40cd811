// The first bytes on a connection between two ranks: who speaks, of which group, on which rail.
// Each end proves that it knows the group's token, which itself never travels:
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

#include "base/result.h"
#include "base/secrets.h"
#include "base/unique_fd.h"
#include "transport/link_keys.h"
#include "transport/rendezvous.h"

namespace lockstep {

// Little-endian on the wire. Magic and version stand there in every version.
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

  // The end that has connected, to reach `peer` on `rail`.
  static Handshake call(const Options& options, int peer, int rail);
  // The end that was connected to: only higher ranks call.
  static Handshake answer(const Options& options);

  // Does what can be done without waiting; true once both ends have proved themselves. After an
  // error the connection is to be closed; kUnsupported is the one that trying again cannot mend.
  Result<bool> advance(int fd);
  // Whether that error met a rank of another epoch: tokens are made anew for each, so this asks for
  // nothing that it could have proved.
  bool is_late() const;

  // Once it is done:
  int peer() const { return peer_; }
  int rail() const { return rail_; }
  // None where the connection is not encrypted.
  Result<std::optional<LinkKeys>> keys() const;

 private:
  enum class State { kStart, kAwaitingHello, kAwaitingProof, kDone };

  Handshake(const Options& options, bool is_caller) : options_(options), is_caller_(is_caller) {}
  Result<bool> receive(int fd, std::span<std::byte> all);
  Result<bool> receive_hello(int fd);
  Status introduce(int fd);
  Status judge_hello();
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
  Hello own_;
  Hello other_;
  Digest proof_{};  // the caller's last word, as it arrives
  size_t received_ = 0;
};

// A socket that connects, or has connected, without blocking. `from`: the numeric address of this
// machine to call from, where it has several; one of another family is not looked at, and empty is
// as the system likes.
Result<UniqueFd> start_connect(const TcpAddress& address, const std::string& from = {});
// 0, or the error number with which connecting ended. For a socket that poll() calls writable.
int connect_error(int fd);

}  // namespace lockstep
