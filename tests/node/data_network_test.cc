#include "node/network/data_network.h"

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

namespace {

DataNetwork network(std::string_view text) {
  auto parsed = DataNetwork::parse(text);
  REQUIRE_MESSAGE(parsed.ok(), text);
  return std::move(parsed.value());
}

}  // namespace

TEST_CASE("data network: an address belongs to it by its first bits") {
  const DataNetwork v4 = network("10.9.4.7/22");
  CHECK(v4.contains("10.9.4.0"));
  CHECK(v4.contains("10.9.7.255"));
  CHECK(!v4.contains("10.9.8.0"));
  CHECK(!v4.contains("::ffff:10.9.4.1"));
  CHECK(!v4.contains("anna"));
  CHECK(!v4.contains(""));
  CHECK(network("0.0.0.0/0").contains("192.0.2.1"));
  CHECK(network("192.0.2.1/32").contains("192.0.2.1"));
  CHECK(!network("192.0.2.1/32").contains("192.0.2.0"));
  const DataNetwork v6 = network("fd00:9::/64");
  CHECK(v6.contains("fd00:9::1"));
  CHECK(v6.contains("fd00:9:0:0:ffff::"));
  CHECK(!v6.contains("fd00:9:0:1::1"));
  CHECK(!v6.contains("10.9.4.1"));
}

TEST_CASE("data network: invalid text is refused with the expected form") {
  for (const char* text : {"", "/", "10.9.0.0", "10.9.0.0/", "10.9.0.0/33", "10.9.0.0/-1",
                           "10.9.0.0/8x", "10.9.0/8", "eth0/24", "fd00::/129", "fd00::"}) {
    const auto parsed = DataNetwork::parse(text);
    REQUIRE_MESSAGE(!parsed.ok(), text);
    CHECK(parsed.error().code == ErrorCode::kInvalidArgument);
    CHECK(parsed.error().message.find("such as 10.9.0.0/24") != std::string::npos);
  }
}

TEST_CASE("data network: this machine's address in it, or an error that lists the existing ones") {
  const std::vector<OwnAddress> own = {
      {"127.0.0.1", "lo", true}, {"192.168.1.5", "wlan0"}, {"10.9.0.5", "thunderbolt0"}};
  CHECK(network("10.9.0.0/16").own_host(own).value() == "10.9.0.5");
  const auto none = network("10.8.0.0/16").own_host(own);
  REQUIRE(!none.ok());
  CHECK(none.error().message ==
        "this machine has no address in 10.8.0.0/16; it has 192.168.1.5 (wlan0), 10.9.0.5 "
        "(thunderbolt0)");
  CHECK(network("10.8.0.0/16").own_host({}).error().message ==
        "this machine has no address in 10.8.0.0/16; it has no others");
}
