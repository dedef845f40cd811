// Byte counts for display.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

std::string bytes_text(uint64_t bytes);  // "4.50 GB"

}  // namespace lockstep
