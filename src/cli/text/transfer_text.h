// The progress of a download as text: where a line may be repainted, one with a bar, the rate and
// the time left; elsewhere a plain line for each tenth. On stderr. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/meters/rate_window.h"
#include "hub/http/download.h"

namespace lockstep {

class TransferText {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TransferText(std::string model) : model_(std::move(model)) {}

  void show(const DownloadProgress& progress, Clock::time_point now);

 private:
  const std::string model_;
  RateWindow rate_;
  int tenths_ = -1;
};

// "12.50 MB of 93.40 MB, 6.20 MB/s, 0:14 left"; while nothing moves, a rate of 0 and no time.
std::string progress_text(uint64_t bytes, uint64_t whole_bytes, double bytes_s);
// "████▌     " of `width` characters; "####......" without UTF-8.
std::string bar_text(double fraction, int width, bool has_utf8);
// "0:05", "12:07", "3:00:12"; "-" if unknown.
std::string duration_text(double seconds);

}  // namespace lockstep
