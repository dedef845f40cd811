#include "base/machine/powermetrics.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/machine/tool_text.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kPowerKeys{
    "Combined Power (CPU + GPU + ANE):", "Intel energy model derived package power (CPUs+GT+SA):"};

// "(1010.09ms elapsed)" of a head line, in seconds.
std::optional<double> elapsed_s(std::string_view line) {
  if (!line.starts_with("*** Sampled system activity")) return std::nullopt;
  const size_t end = line.find("ms elapsed)");
  const size_t start = line.rfind('(', end);
  if (end == std::string_view::npos || start == std::string_view::npos) return std::nullopt;
  const auto milliseconds = leading_decimal(line.substr(start + 1, end - start - 1));
  return milliseconds ? std::optional(*milliseconds / 1000) : std::nullopt;
}

// "1172 mW", "150mW", "2.75W".
std::optional<double> watts_of(std::string_view text) {
  const auto number = leading_decimal(text);
  if (!number) return std::nullopt;
  if (text.ends_with("mW")) return *number / 1000;
  return text.ends_with('W') ? number : std::nullopt;
}

}  // namespace

void PowermetricsSum::add(std::string_view output) {
  while (!output.empty()) {
    const size_t end = output.find('\n');
    rest_.append(
        output.substr(0, std::min({end, output.size(), kLineBytesMax + 1 - rest_.size()})));
    if (rest_.size() > kLineBytesMax) {
      is_skipping_ = true;
      rest_.clear();
    }
    if (end == std::string_view::npos) return;
    if (!is_skipping_) add_line(trimmed(rest_));
    rest_.clear();
    is_skipping_ = false;
    output.remove_prefix(end + 1);
  }
}

void PowermetricsSum::add_line(std::string_view line) {
  if (const auto seconds = elapsed_s(line)) {
    sample_s_ = *seconds <= kSampleSecondsMax ? *seconds : 0;
    return;
  }
  for (const std::string_view key : kPowerKeys) {
    const auto value = after_key(line, key);
    const auto watts = value ? watts_of(*value) : std::nullopt;
    if (!watts || *watts > kWattsMax) continue;
    joules_ += *watts * sample_s_;
    sample_s_ = 0;
  }
}

}  // namespace lockstep
