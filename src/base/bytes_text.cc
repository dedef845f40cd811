#include "base/bytes_text.h"

#include <fmt/core.h>

namespace lockstep {

std::string bytes_text(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f} MB", value / 1e6);
  return fmt::format("{:.2f} KB", value / 1e3);
}

}  // namespace lockstep
