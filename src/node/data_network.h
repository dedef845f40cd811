// DataNetwork: the network over which the ranks of different machines talk, where it is another one
// than that of the control connections: two cables, one of which is the fast one. A value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/own_addresses.h"

namespace lockstep {

class DataNetwork {
 public:
  // "10.9.0.0/24" or "fd00:9::/64". kInvalidArgument: says what is expected.
  static Result<DataNetwork> parse(std::string_view text);

  // Of a numeric address; false for any other text.
  bool contains(const std::string& host) const;
  // Of this machine's addresses the first that is in it. kNotFound: names those that there are.
  Result<std::string> own_host(std::span<const OwnAddress> addresses) const;

 private:
  static constexpr size_t kBytesMax = 16;

  // Nullopt: no numeric address of this family.
  static std::optional<std::array<uint8_t, kBytesMax>> bytes_of(const std::string& host,
                                                                int family);

  std::string text_;
  int family_ = 0;  // AF_INET or AF_INET6
  int prefix_ = 0;  // bits
  std::array<uint8_t, kBytesMax> address_{};
};

}  // namespace lockstep
