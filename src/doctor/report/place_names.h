// PlaceNames: hides where a machine stands: IPv4, IPv6 and MAC addresses, UUIDs and other long
// hardware ids, and names of machines become "[address]", "[id]" and "[host]". Loopback addresses
// stay, since they say nothing. For reports that go to strangers (doctor/report/redaction.h). A
// value; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class PlaceNames {
 public:
  static constexpr size_t kNameBytesMin = 3;  // shorter ones would hide ordinary words

  // Knows forms, and names that end in .local, .lan, .home, .internal or .home.arpa.
  PlaceNames() = default;
  // Knows this machine's name too.
  static PlaceNames of_machine();

  // A machine's name, with or without a domain; its first label counts as well.
  void add_host(std::string_view name);

  std::string hidden(std::string_view text) const;

 private:
  bool is_host(std::string_view name) const;

  std::vector<std::string> hosts_;  // lower case
};

}  // namespace lockstep
