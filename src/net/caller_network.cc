#include "net/caller_network.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cstring>

#include "base/byte_text.h"
#include "base/crypto/hasher.h"

namespace lockstep {
namespace {

constexpr size_t kNetworkBytes = 8;  // of an IPv6 address: a /64

}  // namespace

std::string caller_network(const std::string& address) {
  using namespace boost::asio::ip;
  boost::system::error_code error;
  const class address parsed = make_address(address, error);
  if (error) return address;
  if (parsed.is_loopback()) return "loopback";
  if (parsed.is_v4()) return parsed.to_string();
  const address_v6 six = parsed.to_v6();
  if (six.is_v4_mapped()) return caller_network(make_address_v4(v4_mapped, six).to_string());
  address_v6::bytes_type bytes = six.to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), 0);
  return address_v6(bytes).to_string() + "/64";
}

uint64_t network_id(const std::string& network) {
  const Digest hash = sha256(bytes_of(network));
  uint64_t id = 0;
  std::memcpy(&id, hash.data(), sizeof id);
  return std::max<uint64_t>(id, 1);
}

}  // namespace lockstep
