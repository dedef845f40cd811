#include "base/machine/meminfo.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace lockstep {

std::optional<uint64_t> meminfo_bytes(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    line.remove_prefix(key.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    uint64_t kilobytes = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), kilobytes);
    if (read.ec != std::errc() || kilobytes > UINT64_MAX / 1024) return std::nullopt;
    return kilobytes * 1024;
  }
  return std::nullopt;
}

}  // namespace lockstep
