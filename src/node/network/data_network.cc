#include "node/network/data_network.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace lockstep {
namespace {

constexpr int bits_of(int family) {
  return family == AF_INET ? 32 : 128;
}

Error no_network(std::string_view text) {
  return {ErrorCode::kInvalidArgument,
          fmt::format(
              "'{}' is not a network: write an address and its number of bits, such as 10.9.0.0/24",
              text)};
}

Error link_local(const std::string& text) {
  return {
      ErrorCode::kInvalidArgument,
      fmt::format("{} is link-local: its addresses are valid only with an interface of one "
                  "machine, so others cannot be told them; give each cable an IPv4 network such "
                  "as 10.86.12.0/30, or one of fd00::/8",
                  text)};
}

std::string listed(const std::vector<DataNetwork>& networks) {
  std::string list;
  for (const DataNetwork& one : networks) list += (list.empty() ? "" : ", ") + one.text();
  return list;
}

std::string listed(std::span<const OwnAddress> addresses) {
  std::string list;
  for (const OwnAddress& one : addresses) {
    if (one.is_loopback) continue;
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", one.host, one.interface);
  }
  return list.empty() ? "no others" : list;
}

}  // namespace

std::optional<std::array<uint8_t, DataNetwork::kBytesMax>> DataNetwork::bytes_of(
    const std::string& host, int family) {
  std::array<uint8_t, kBytesMax> bytes{};
  if (::inet_pton(family, host.c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

Result<DataNetwork> DataNetwork::parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return no_network(text);
  DataNetwork network;
  network.text_ = text;
  const std::string host(text.substr(0, slash));
  network.family_ = host.find(':') == std::string::npos ? AF_INET : AF_INET6;
  const auto bytes = bytes_of(host, network.family_);
  const std::string_view bits = text.substr(slash + 1);
  const auto [end, failed] =
      std::from_chars(bits.data(), bits.data() + bits.size(), network.prefix_);
  const bool is_number = failed == std::errc() && end == bits.data() + bits.size();
  if (!bytes || !is_number || network.prefix_ < 0 || network.prefix_ > bits_of(network.family_)) {
    return no_network(text);
  }
  network.address_ = *bytes;
  return network;
}

bool DataNetwork::contains(const std::string& host) const {
  const auto bytes = bytes_of(host, family_);
  if (!bytes) return false;
  for (int bit = 0; bit < prefix_; ++bit) {
    const auto byte = static_cast<size_t>(bit / 8);
    const int mask = 0x80 >> (bit % 8);
    if (((address_[byte] ^ (*bytes)[byte]) & mask) != 0) return false;
  }
  return true;
}

bool DataNetwork::is_link_local() const {
  constexpr int kLinkLocalBits = 10;  // fe80::/10, RFC 4291
  return family_ == AF_INET6 && prefix_ >= kLinkLocalBits && address_[0] == 0xfe &&
         (address_[1] & 0xc0) == 0x80;
}

Result<DataNetworks> DataNetworks::parse(std::span<const std::string> texts) {
  DataNetworks networks;
  for (const std::string& text : texts) {
    std::string_view rest = text;
    while (true) {
      const size_t comma = rest.find(',');
      DataNetwork network = TRY(DataNetwork::parse(rest.substr(0, comma)));
      if (network.is_link_local()) return link_local(network.text());
      networks.networks_.push_back(std::move(network));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  if (networks.networks_.size() > kNetworksMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--data-network names {} networks, but {} at most are possible: name "
                             "one that contains several",
                             networks.networks_.size(), kNetworksMax)};
  }
  return networks;
}

const DataNetwork* DataNetworks::shared(const std::string& a, const std::string& b) const {
  for (const DataNetwork& network : networks_) {
    if (network.contains(a) && network.contains(b)) return &network;
  }
  return nullptr;
}

Result<std::vector<DataAddress>> DataNetworks::own(std::span<const OwnAddress> addresses) const {
  std::vector<DataAddress> found;
  bool is_in_one = false;
  for (const DataNetwork& network : networks_) {
    for (const OwnAddress& one : addresses) {
      if (!network.contains(one.host)) continue;
      is_in_one = true;
      const DataAddress address{one.host, one.bits};
      const bool is_new = std::find(found.begin(), found.end(), address) == found.end();
      if (one.is_running && is_new) found.push_back(address);
    }
  }
  if (!is_in_one) {
    return Error{ErrorCode::kNotFound, fmt::format("this machine has no address in {}; it has {}",
                                                   listed(networks_), listed(addresses))};
  }
  if (found.size() > kDataAddressesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("this machine has {} addresses in {}, but {} at most are possible: "
                             "name smaller networks with --data-network",
                             found.size(), listed(networks_), kDataAddressesMax)};
  }
  return found;
}

std::string DataNetworks::ambiguity(std::span<const OwnAddress> addresses) const {
  for (size_t i = 0; i < addresses.size(); ++i) {
    for (size_t k = i + 1; k < addresses.size(); ++k) {
      const OwnAddress &a = addresses[i], &b = addresses[k];
      if (a.interface == b.interface || shared(a.host, b.host) == nullptr) continue;
      if (!are_neighbours({a.host, a.bits}, {b.host, b.bits})) continue;
      return fmt::format(
          "{} ({}) and {} ({}) are in one network, so the system may send what is meant for one "
          "cable over the other: give each cable a network of its own, such as 10.86.12.0/30 and "
          "10.86.12.4/30",
          a.host, a.interface, b.host, b.interface);
    }
  }
  return "";
}

bool are_neighbours(const DataAddress& a, const DataAddress& b) {
  const auto of_a = DataNetwork::parse(fmt::format("{}/{}", a.host, a.bits));
  const auto of_b = DataNetwork::parse(fmt::format("{}/{}", b.host, b.bits));
  return of_a.ok() && of_b.ok() && of_a.value().contains(b.host) && of_b.value().contains(a.host);
}

}  // namespace lockstep
