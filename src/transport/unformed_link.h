// UnformedLink: the link to a rank that is not connected yet. It transfers no frames and its health
// says why. For a rank that loads its weights before its group is formed: Group needs a link for
// each peer.
#pragma once

#include <memory>
#include <vector>

#include "transport/frame.h"
#include "transport/link.h"

namespace lockstep {

class UnformedLink final : public Link {
 public:
  explicit UnformedLink(int peer) : peer_(peer) {}

  size_t frame_bytes_max() const override { return kFrameBytesMax; }
  std::span<std::byte> acquire(size_t) override { return {}; }
  void post() override {}
  bool flush() override { return true; }
  std::span<const std::byte> peek() override { return {}; }
  void release() override {}
  void wait_readable(std::chrono::microseconds) override {}
  Status health() const override {
    return peer_error(ErrorCode::kPeerLost, peer_, "the group is not formed yet");
  }

 private:
  int peer_;
};

// links[r] for each rank except `rank`.
inline std::vector<std::unique_ptr<Link>> unformed_links(int rank, int size) {
  std::vector<std::unique_ptr<Link>> links(static_cast<size_t>(size));
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) links[static_cast<size_t>(peer)] = std::make_unique<UnformedLink>(peer);
  }
  return links;
}

}  // namespace lockstep
