// TcpLink: a Link over a connected TCP socket that is polled, never waited on. A posted frame is
// passed to the kernel at once, as much as it accepts; flush(), acquire() and peek() push the rest.
// Frames are read in place in the receive buffer. With keys every payload is sealed in place before
// it leaves and opened in place on arrival; the frame's header stays readable, is covered by the
// seal and carries its tag.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/crypto/aead.h"
#include "base/files/unique_fd.h"
#include "transport/frame.h"
#include "transport/link.h"
#include "transport/link_keys.h"
#include "transport/path_watch.h"

namespace lockstep {

class TcpLink final : public Link {
 public:
  struct Options {
    int peer = 0;  // its rank, for messages
    uint32_t epoch = 0;
    std::optional<LinkKeys> keys{};  // none: frames are neither encrypted nor authenticated
  };

  // Makes the connected socket non-blocking and sets its latency options.
  static Result<std::unique_ptr<Link>> open(UniqueFd socket, const Options& options);

  ~TcpLink() override;
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  size_t frame_bytes_max() const override { return kFrameBytesMax; }
  std::span<std::byte> acquire(size_t bytes) override;
  void post() override;
  bool flush() override;
  std::span<const std::byte> peek() override;
  void release() override;
  void wait_readable(std::chrono::microseconds at_most) override;
  Status health() const override;

 private:
  // Bytes [begin, end) are in use; aligned to kFrameAlignment, so frames in it are too.
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;  // untouched before its use, so an idle link takes little
    std::byte* bytes = nullptr;
    size_t begin = 0;
    size_t end = 0;
    void allocate(size_t size);
  };

  struct Seals {
    AeadSealer sealer;
    AeadOpener opener;
  };

  TcpLink(UniqueFd socket, const Options& options, std::optional<Seals> seals);
  void receive();
  void make_room();
  std::span<const std::byte> parse();
  bool unseal(const FrameHeader& header);
  void break_link(Error error);
  void lose(int error_number);

  UniqueFd socket_;
  int peer_;
  uint32_t epoch_;
  std::optional<Seals> seals_;
  Buffer out_;
  Buffer in_;
  size_t acquired_bytes_ = 0;  // payload of the last acquired frame; 0: none
  uint64_t send_sequence_ = 0;
  uint64_t receive_sequence_ = 0;
  std::span<const std::byte> peeked_;  // the held frame; empty: none
  bool has_input_ = true;              // false after the end of the connection or a bad frame
  Status state_ = Ok{};
  mutable PathWatch path_;  // checked when the link's health is asked for
};

}  // namespace lockstep
