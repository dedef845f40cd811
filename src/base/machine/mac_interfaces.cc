#include "base/machine/mac_interfaces.h"

#include <algorithm>

#include "base/letters.h"
#include "base/machine/mac_system.h"
#include "base/machine/program_output.h"
#include "base/machine/tool_text.h"

namespace lockstep {
namespace {

constexpr uint64_t kMediaMbitMax = 10'000'000;

// "en0: flags=8863<UP,BROADCAST,RUNNING> mtu 1500" begins at the first column.
bool is_head(std::string_view line) {
  return !line.empty() && line[0] != ' ' && line[0] != '\t' &&
         line.find(": flags=") != std::string_view::npos;
}

MacInterface interface_of(std::string_view head) {
  const size_t open = head.find('<'), close = head.find('>');
  const bool has_flags = open < close && close != std::string_view::npos;
  const std::string flags =
      "," + std::string(has_flags ? head.substr(open + 1, close - open - 1) : "") + ",";
  return {.name = std::string(head.substr(0, head.find(':'))),
          .is_up = flags.find(",UP,") != std::string::npos,
          .members = {}};
}

void add_line(std::string_view line, MacInterface& interface) {
  if (const auto member = after_key(line, "member:")) {
    const auto words = tool_words(*member);
    if (!words.empty() && interface.members.size() < kMacMembersMax) {
      interface.members.emplace_back(words.front());
    }
  } else if (const auto media = after_key(line, "media:")) {
    interface.media_mbit_s = media_mbit_s(*media);
    interface.is_half_duplex = media->find("half-duplex") != std::string_view::npos;
  } else if (const auto status = after_key(line, "status:")) {
    interface.is_active = *status == "active";
  }
}

}  // namespace

std::vector<MacInterface> parse_ifconfig(std::string_view text) {
  std::vector<MacInterface> interfaces;
  for (const std::string_view line : tool_lines(text)) {
    if (is_head(line)) {
      if (interfaces.size() == kMacInterfacesMax) break;
      interfaces.push_back(interface_of(line));
    } else if (!interfaces.empty()) {
      add_line(line, interfaces.back());
    }
  }
  return interfaces;
}

std::vector<MacInterface> read_mac_interfaces() {
  if constexpr (!kIsMac) return {};
  const auto said = run_program({.program = "ifconfig", .arguments = {"-a"}});
  if (!said.ok() || said.value().status != 0) return {};
  return parse_ifconfig(said.value().output);
}

const MacInterface* find_interface(const std::vector<MacInterface>& interfaces,
                                   std::string_view name) {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&](const MacInterface& one) { return one.name == name; });
  return found == interfaces.end() ? nullptr : &*found;
}

int64_t media_mbit_s(std::string_view media) {
  const std::string small = lower_text(media);
  const size_t base = small.find("base");
  if (base == std::string::npos) return 0;
  size_t start = base;
  while (start > 0 &&
         (is_digit(small[start - 1]) || small[start - 1] == 'g' || small[start - 1] == '.')) {
    --start;
  }
  const std::string_view word = std::string_view(small).substr(start, base - start);
  const auto number = leading_decimal(word);
  if (!number || *number > static_cast<double>(kMediaMbitMax)) return 0;
  return static_cast<int64_t>(word.ends_with('g') ? *number * 1000 : *number);
}

}  // namespace lockstep
