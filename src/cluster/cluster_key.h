// ClusterKey: the secret that makes nodes a cluster. Any holder is a member; it is sent only to a
// joining machine, over a session that the join has proved (cluster/join/join_frames.h). Everything
// else uses keys derived from it, one for each purpose. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/crypto/secrets.h"
#include "base/result.h"

namespace lockstep {

// A cluster's public name: reveals nothing about the key.
class ClusterId {
 public:
  static constexpr size_t kBytes = 16;

  ClusterId() = default;
  explicit ClusterId(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  const std::array<std::byte, kBytes>& bytes() const { return bytes_; }
  std::string text() const;        // 32 hex digits
  std::string short_text() const;  // the first 8, for people
  auto operator<=>(const ClusterId&) const = default;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

class ClusterKey {
 public:
  static constexpr size_t kBytes = 32;

  static Result<ClusterKey> generate();
  // 64 hex digits, as text() gives them; kCorrupt for anything else.
  static Result<ClusterKey> parse(std::string_view text);
  std::string text() const;

  const ClusterId& id() const { return id_; }
  // A separate key for each purpose.
  Result<Digest> derive(std::string_view purpose) const;

  bool operator==(const ClusterKey& other) const;

 private:
  static Result<ClusterKey> adopt(const std::array<std::byte, kBytes>& bytes);

  std::array<std::byte, kBytes> bytes_{};
  ClusterId id_;
};

}  // namespace lockstep
