#include "node/network/network_speed.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("network speed: a number for every host, the default if nothing is known") {
  CHECK(network_bytes_s("*") > 0);
  CHECK(network_bytes_s("127.0.0.1") == kNetworkBytesDefault);  // loopback has no known speed
  CHECK(network_bytes_s("192.0.2.1") == kNetworkBytesDefault);  // no interface has it
  CHECK(network_bytes_s("not an address") == kNetworkBytesDefault);
}
