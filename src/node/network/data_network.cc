#include "node/network/data_network.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <charconv>

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

Result<std::string> DataNetwork::own_host(std::span<const OwnAddress> addresses) const {
  for (const OwnAddress& one : addresses) {
    if (contains(one.host)) return one.host;
  }
  return Error{ErrorCode::kNotFound, fmt::format("this machine has no address in {}; it has {}",
                                                 text_, listed(addresses))};
}

}  // namespace lockstep
