#include "node/network/data_network.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace lockstep;

namespace {

DataNetwork network(std::string_view text) {
  auto parsed = DataNetwork::parse(text);
  REQUIRE_MESSAGE(parsed.ok(), text);
  return std::move(parsed.value());
}

DataNetworks networks(const std::vector<std::string>& texts) {
  auto parsed = DataNetworks::parse(texts);
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
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
  const std::vector<OwnAddress> own = {{"127.0.0.1", "lo", true, 8},
                                       {"192.168.1.5", "wlan0", false, 24},
                                       {"10.9.0.5", "en5", false, 30}};
  CHECK(networks({"10.9.0.0/16"}).own(own).value() == std::vector<DataAddress>{{"10.9.0.5", 30}});
  const auto none = networks({"10.8.0.0/16"}).own(own);
  REQUIRE(!none.ok());
  CHECK(none.error().message ==
        "this machine has no address in 10.8.0.0/16; it has 192.168.1.5 (wlan0), 10.9.0.5 (en5)");
  CHECK(networks({"10.8.0.0/16", "10.7.0.0/16"}).own({}).error().message ==
        "this machine has no address in 10.8.0.0/16, 10.7.0.0/16; it has no others");
}

TEST_CASE("data networks: the addresses in each, in the order of the flag, and each once") {
  const std::vector<OwnAddress> own = {{"10.9.0.1", "en1", false, 24},
                                       {"10.86.12.5", "en3", false, 30},
                                       {"10.86.12.1", "en2", false, 30},
                                       {"fe80::1%en2", "en2", false, 64}};
  CHECK(networks({"10.86.12.0/30,10.86.12.4/30", "10.0.0.0/8", "::/0"}).own(own).value() ==
        std::vector<DataAddress>{{"10.86.12.1", 30}, {"10.86.12.5", 30}, {"10.9.0.1", 24}});
}

TEST_CASE("data networks: an interface without a cable is left out, and is no error") {
  std::vector<OwnAddress> own = {{"10.9.0.1", "en1", false, 24}, {"10.9.1.1", "en2", false, 24}};
  own[0].is_running = false;
  const DataNetworks given = networks({"10.9.0.0/16"});
  CHECK(given.own(own).value() == std::vector<DataAddress>{{"10.9.1.1", 24}});
  own[1].is_running = false;
  CHECK(given.own(own).value().empty());
}

TEST_CASE("data networks: too many addresses or networks are refused") {
  std::vector<OwnAddress> own;
  for (size_t i = 0; i <= kDataAddressesMax; ++i) {
    own.push_back({"10.9.0." + std::to_string(i + 1), "en1", false, 24});
  }
  const auto many = networks({"10.9.0.0/24"}).own(own);
  REQUIRE(!many.ok());
  CHECK(many.error().message ==
        "this machine has 17 addresses in 10.9.0.0/24, but 16 at most are possible: name smaller "
        "networks with --data-network");
  own.pop_back();
  CHECK(networks({"10.9.0.0/24"}).own(own).value().size() == kDataAddressesMax);
  const std::vector<std::string> texts(DataNetworks::kNetworksMax + 1, "10.9.0.0/24");
  CHECK(DataNetworks::parse(texts).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("data networks: link-local ones and invalid texts are refused with a sentence") {
  for (const char* text : {"fe80::/10", "fe80::/64", "10.9.0.0/24,febf::/16"}) {
    const auto parsed = DataNetworks::parse(std::vector<std::string>{text});
    REQUIRE_MESSAGE(!parsed.ok(), text);
    CHECK(parsed.error().code == ErrorCode::kInvalidArgument);
    CHECK(parsed.error().message.find("is link-local") != std::string::npos);
  }
  CHECK(!DataNetworks::parse(std::vector<std::string>{"10.9.0.0/24,"}).ok());
  CHECK(!DataNetworks::parse(std::vector<std::string>{""}).ok());
  CHECK(DataNetworks::parse({}).value().is_empty());
}

TEST_CASE("data networks: two interfaces in one network are named") {
  const DataNetworks given = networks({"10.9.0.0/16"});
  const std::vector<OwnAddress> apart = {{"10.9.0.1", "en1", false, 30},
                                         {"10.9.0.5", "en2", false, 30}};
  CHECK(given.ambiguity(apart) == "");
  const std::vector<OwnAddress> together = {{"10.9.0.1", "en1", false, 24},
                                            {"10.9.0.5", "en2", false, 24}};
  CHECK(given.ambiguity(together).starts_with("10.9.0.1 (en1) and 10.9.0.5 (en2) are in one "));
  const std::vector<OwnAddress> on_one = {{"10.9.0.1", "en1", false, 24},
                                          {"10.9.0.5", "en1", false, 24}};
  CHECK(given.ambiguity(on_one) == "");
  CHECK(networks({"10.8.0.0/16"}).ambiguity(together) == "");
}

TEST_CASE("own addresses: loopback has its network, and is where the system calls it from") {
  const std::vector<OwnAddress> own = own_addresses();
  const auto loopback = std::find_if(own.begin(), own.end(),
                                     [](const OwnAddress& one) { return one.host == "127.0.0.1"; });
  REQUIRE(loopback != own.end());
  CHECK(loopback->bits == 8);
  CHECK(loopback->is_loopback);
  CHECK(own_address_towards("127.0.0.1") == "127.0.0.1");
  CHECK(own_address_towards("anna") == "");
}
