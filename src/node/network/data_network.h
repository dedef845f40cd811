// DataNetwork: the network for links between ranks of different machines, where it differs from the
// control network: two cables, one of them fast. A value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/network/own_addresses.h"

namespace lockstep {

class DataNetwork {
 public:
  // "10.9.0.0/24" or "fd00:9::/64". kInvalidArgument says what is expected.
  static Result<DataNetwork> parse(std::string_view text);

  // For a numeric address; false for any other text.
  bool contains(const std::string& host) const;
  // The first of this machine's addresses that is in it. kNotFound lists the addresses.
  Result<std::string> own_host(std::span<const OwnAddress> addresses) const;

 private:
  static constexpr size_t kBytesMax = 16;

  // Nullopt: not a numeric address of this family.
  static std::optional<std::array<uint8_t, kBytesMax>> bytes_of(const std::string& host,
                                                                int family);

  std::string text_;
  int family_ = 0;  // AF_INET or AF_INET6
  int prefix_ = 0;  // bits
  std::array<uint8_t, kBytesMax> address_{};
};

}  // namespace lockstep
