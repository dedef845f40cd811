#include "cli/text/transfer_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"
#include "cli/text/output.h"
#include "cli/text/terminal_text.h"

namespace lockstep {
namespace {

constexpr int kBarWidth = 16;  // the figures fit 80 columns too
constexpr size_t kFileNameMax = 36;
constexpr double kDurationMax = 359'999;  // 99:59:59

// The end of a long name is more useful than its beginning. In bytes, but never cut inside of a
// character.
std::string short_name(std::string_view name) {
  if (name.size() <= kFileNameMax) return std::string(name);
  name.remove_prefix(name.size() - kFileNameMax + 3);
  while (!name.empty() && is_utf8_continuation(name[0])) name.remove_prefix(1);
  return "..." + std::string(name);
}

}  // namespace

std::string progress_text(uint64_t bytes, uint64_t whole_bytes, double bytes_s) {
  std::string text = fmt::format("{} of {}, {}/s", bytes_text(bytes), bytes_text(whole_bytes),
                                 bytes_text(static_cast<uint64_t>(std::max(0.0, bytes_s))));
  if (bytes_s < 1) return text;
  const auto left = static_cast<double>(whole_bytes - std::min(bytes, whole_bytes));
  return text + fmt::format(", {} left", duration_text(left / bytes_s));
}

std::string bar_text(double fraction, int width, bool has_utf8) {
  if (!has_utf8) {
    const auto full = static_cast<size_t>(std::lround(std::clamp(fraction, 0.0, 1.0) * width));
    return std::string(full, '#') + std::string(static_cast<size_t>(width) - full, '.');
  }
  constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * width * 8);
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  for (int i = (eighths + 7) / 8; i < width; ++i) text += " ";
  return text;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kDurationMax) return "-";
  const auto whole = static_cast<long>(std::ceil(seconds));
  const long hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

void TransferText::show(const DownloadProgress& progress, Clock::time_point now) {
  rate_.note(now, progress.bytes_there);
  const double wanted = static_cast<double>(std::max<uint64_t>(progress.bytes_wanted, 1));
  const double fraction = static_cast<double>(progress.bytes_there) / wanted;
  const std::string amount =
      progress_text(progress.bytes_there, progress.bytes_wanted, rate_.at(now));
  const std::string file =
      progress.is_checking ? "checking " + short_name(progress.file) : short_name(progress.file);
  const TerminalManner manner = stderr_manner();
  if (manner.may_repaint) {
    const std::string bar = bar_text(fraction, kBarWidth, manner.has_utf8);
    show_progress(
        fmt::format("{:3.0f} % |{}| {}  {}", std::floor(fraction * 100), bar, amount, file));
    return;
  }
  const int tenths = static_cast<int>(fraction * 10);
  if (tenths == tenths_) return;
  tenths_ = tenths;
  fmt::print(stderr, "{}: {} %, {}\n", model_, tenths * 10, amount);
}

}  // namespace lockstep
