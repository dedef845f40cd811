#include "cli/text/transfer_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/text/output.h"
#include "cli/text/terminal_text.h"

namespace lockstep {
namespace {

constexpr int kBarWidth = 24;
constexpr size_t kFileNameMax = 36;
constexpr std::chrono::seconds kRateWindow{5};
constexpr double kDurationMax = 359'999;  // 99:59:59

// The end of a long name is more useful than its beginning.
std::string short_name(const std::string& name) {
  return name.size() <= kFileNameMax ? name : "..." + name.substr(name.size() - kFileNameMax + 3);
}

}  // namespace

std::string bar_text(double fraction, int width) {
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

double TransferText::bytes_per_second(uint64_t bytes, Clock::time_point now) {
  if (!samples_.empty() && bytes < samples_.back().bytes) samples_.clear();  // fetched again
  samples_.push_back({now, bytes});
  while (samples_.size() > 2 && now - samples_[1].time > kRateWindow) samples_.pop_front();
  const double seconds = std::chrono::duration<double>(now - samples_.front().time).count();
  if (seconds <= 0) return 0;
  return static_cast<double>(bytes - samples_.front().bytes) / seconds;
}

void TransferText::show(const DownloadProgress& progress, Clock::time_point now) {
  const double rate = bytes_per_second(progress.bytes_there, now);
  const double wanted = static_cast<double>(std::max<uint64_t>(progress.bytes_wanted, 1));
  const double fraction = static_cast<double>(progress.bytes_there) / wanted;
  const double left = static_cast<double>(progress.bytes_wanted - progress.bytes_there);
  const std::string amount =
      fmt::format("{} of {}", bytes_text(progress.bytes_there), bytes_text(progress.bytes_wanted));
  const std::string speed = fmt::format("{}/s, {} left", bytes_text(static_cast<uint64_t>(rate)),
                                        duration_text(left / rate));
  const std::string file =
      progress.is_checking ? "checking " + short_name(progress.file) : short_name(progress.file);
  if (stderr_manner().may_repaint) {
    show_progress(fmt::format("{:3.0f} % |{}| {}, {}  {}", std::floor(fraction * 100),
                              bar_text(fraction, kBarWidth), amount, speed, file));
    return;
  }
  const int tenths = static_cast<int>(fraction * 10);
  if (tenths == tenths_) return;
  tenths_ = tenths;
  fmt::print(stderr, "{}: {} %, {}, {}\n", model_, tenths * 10, amount, speed);
}

}  // namespace lockstep
