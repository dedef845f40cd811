// `ifconfig -a` of a Mac, put together from the forms of recorded outputs.
#include "base/machine/mac_interfaces.h"

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

constexpr const char* kMacIfconfig =
    "lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384\n"
    "\toptions=1203<RXCSUM,TXCSUM,TXSTATUS,SW_TIMESTAMP>\n"
    "\tinet 127.0.0.1 netmask 0xff000000\n"
    "stf0: flags=0<> mtu 1280\n"
    "en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500\n"
    "\tether 24:5e:be:4e:25:85\n"
    "\tinet 192.168.1.3 netmask 0xffffff00 broadcast 192.168.1.255\n"
    "\tnd6 options=201<PERFORMNUD,DAD>\n"
    "\tmedia: autoselect (10Gbase-T <full-duplex,flow-control>)\n"
    "\tstatus: active\n"
    "en2: flags=8963<UP,BROADCAST,SMART,RUNNING,PROMISC,SIMPLEX,MULTICAST> mtu 1500\n"
    "\tmedia: autoselect <full-duplex>\n"
    "\tstatus: inactive\n"
    "en9: flags=8862<BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500\n"
    "\tmedia: autoselect (100baseTX <half-duplex>)\n"
    "bridge0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500\n"
    "\tConfiguration:\n"
    "\t\tid 0:0:0:0:0:0 priority 0 hellotime 0 fwddelay 0\n"
    "\tmember: en2 flags=3<LEARNING,DISCOVER>\n"
    "\t        ifmaxaddr 0 port 8 priority 0 path cost 0\n"
    "\tmember: en3 flags=3<LEARNING,DISCOVER>\n"
    "\t        ifmaxaddr 0 port 9 priority 0 path cost 0\n"
    "\tmedia: <unknown type>\n"
    "\tstatus: inactive\n";

}  // namespace

TEST_CASE("a Mac's interfaces have their media, and bridges their members") {
  const auto interfaces = parse_ifconfig(kMacIfconfig);
  REQUIRE(interfaces.size() == 6);
  const MacInterface* const ethernet = find_interface(interfaces, "en0");
  REQUIRE(ethernet != nullptr);
  CHECK(ethernet->is_up);
  CHECK(ethernet->is_active);
  CHECK(ethernet->media_mbit_s == 10'000);
  CHECK_FALSE(ethernet->is_half_duplex);
  const MacInterface* const thunderbolt = find_interface(interfaces, "en2");
  REQUIRE(thunderbolt != nullptr);
  CHECK(thunderbolt->media_mbit_s == 0);
  CHECK_FALSE(thunderbolt->is_active);
  const MacInterface* const slow = find_interface(interfaces, "en9");
  REQUIRE(slow != nullptr);
  CHECK_FALSE(slow->is_up);  // its flags have no UP
  CHECK(slow->is_half_duplex);
  CHECK(slow->media_mbit_s == 100);
  const MacInterface* const bridge = find_interface(interfaces, "bridge0");
  REQUIRE(bridge != nullptr);
  CHECK(bridge->members == std::vector<std::string>{"en2", "en3"});
  CHECK(find_interface(interfaces, "en") == nullptr);
}

TEST_CASE("the speed of a medium is read in all its spellings") {
  CHECK(media_mbit_s("autoselect (1000baseT <full-duplex>)") == 1000);
  CHECK(media_mbit_s("2500Base-T <full-duplex>") == 2500);
  CHECK(media_mbit_s("autoselect (2.5Gbase-T)") == 2500);
  CHECK(media_mbit_s("10Gbase-SR") == 10'000);
  for (const char* none : {"", "none", "autoselect", "<unknown type>", "base", "xbase", "Gbase",
                           "99999999999999999999base", "99999999base"}) {
    CHECK_MESSAGE(media_mbit_s(none) == 0, none);
  }
}

TEST_CASE("interfaces and members have limits, and garbage is no interface") {
  CHECK(parse_ifconfig("").empty());
  CHECK(parse_ifconfig("\tmember: en1\nmedia: 1000baseT\n: no flags\n").empty());
  std::string many;
  for (size_t i = 0; i < 2 * kMacInterfacesMax; ++i) many += "en: flags=1<UP> mtu 1\n";
  CHECK(parse_ifconfig(many).size() == kMacInterfacesMax);
  std::string bridge = "bridge0: flags=1<UP> mtu 1\n";
  for (size_t i = 0; i < 2 * kMacMembersMax; ++i) bridge += "\tmember: en1\n";
  CHECK(parse_ifconfig(bridge)[0].members.size() == kMacMembersMax);
}
