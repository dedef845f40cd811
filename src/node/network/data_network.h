// DataNetwork, DataNetworks: the networks for links between ranks of different machines, where they
// differ from the control network: a fast cable in addition, or a cable for each pair of machines.
// Values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/data_address.h"
#include "node/network/own_addresses.h"

namespace lockstep {

class DataNetwork {
 public:
  // "10.9.0.0/24" or "fd00:9::/64". kInvalidArgument says what is expected.
  static Result<DataNetwork> parse(std::string_view text);

  // For a numeric address; false for any other text, such as link-local IPv6 with its interface.
  bool contains(const std::string& host) const;
  // All its addresses are link-local IPv6, which mean something on one machine only.
  bool is_link_local() const;
  const std::string& text() const { return text_; }

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

// Those of --data-network, in its order.
class DataNetworks {
 public:
  // A mesh of eleven machines has 55 cables.
  static constexpr size_t kNetworksMax = 64;

  // Each text is one network, or several with commas. kInvalidArgument says what is wrong.
  static Result<DataNetworks> parse(std::span<const std::string> texts);

  bool is_empty() const { return networks_.empty(); }
  // The first that contains both; null if none does.
  const DataNetwork* shared(const std::string& a, const std::string& b) const;
  // This machine's addresses in them, network by network, each once; those of interfaces that do
  // not run are left out. kNotFound if it has none at all, also on those, and lists the addresses;
  // kExhausted beyond kDataAddressesMax.
  Result<std::vector<DataAddress>> own(std::span<const OwnAddress> addresses) const;
  // Two interfaces of this machine are in one network, which leaves it to chance which of them
  // reaches a neighbour: the sentence for the user; empty: there are no such two.
  std::string ambiguity(std::span<const OwnAddress> addresses) const;

 private:
  std::vector<DataNetwork> networks_;
};

// Both interfaces are in one network, so that one calls the other without a router.
bool are_neighbours(const DataAddress& a, const DataAddress& b);

}  // namespace lockstep
