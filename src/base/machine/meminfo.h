// A line of Linux's /proc/meminfo (man 5 proc): "MemTotal:    1234 kB". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

// `text`: the whole file; `key`: "MemTotal". In bytes; nullopt if there is no such line.
std::optional<uint64_t> meminfo_bytes(std::string_view text, std::string_view key);

}  // namespace lockstep
