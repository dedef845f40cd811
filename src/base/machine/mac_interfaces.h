// The interfaces of a Mac as `ifconfig -a` prints them (man 8 ifconfig; recorded outputs are in
// github.com/ntop/ntopng issue 6453 and github.com/glpi-project/glpi-agent issue 673): the media,
// which no call of the socket API tells in bits per second, and the members of bridges. Pure
// functions over any bytes, but for read_mac_interfaces(). Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct MacInterface {
  std::string name;  // "en0", "bridge0"
  bool is_up = false;
  bool is_active = false;    // "status: active"
  int64_t media_mbit_s = 0;  // 0: unknown; Thunderbolt and Wi-Fi name no speed
  bool is_half_duplex = false;
  std::vector<std::string> members;  // of a bridge
};

inline constexpr size_t kMacInterfacesMax = 256;
inline constexpr size_t kMacMembersMax = 64;

std::vector<MacInterface> parse_ifconfig(std::string_view text);
// Runs it; empty if it fails, or is another system's.
std::vector<MacInterface> read_mac_interfaces();
// Null if there is none.
const MacInterface* find_interface(const std::vector<MacInterface>& interfaces,
                                   std::string_view name);

// The speed in a line of media: "autoselect (10Gbase-T <full-duplex,flow-control>)" is 10,000
// Mbit/s, "1000baseT" 1,000, "2500Base-T" 2,500. 0: it names none.
int64_t media_mbit_s(std::string_view media);

}  // namespace lockstep
