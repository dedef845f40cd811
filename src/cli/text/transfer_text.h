// The progress of a download as text: where a line may be repainted, one with a bar, the rate and
// the time left; elsewhere a plain line for each tenth. On stderr. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "hub/http/download.h"

namespace lockstep {

class TransferText {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TransferText(std::string model) : model_(std::move(model)) {}

  void show(const DownloadProgress& progress, Clock::time_point now);

 private:
  struct Sample {
    Clock::time_point time;
    uint64_t bytes;
  };

  double bytes_per_second(uint64_t bytes, Clock::time_point now);

  const std::string model_;
  std::deque<Sample> samples_;  // of the last seconds
  int tenths_ = -1;
};

// "████▌     " of `width` characters.
std::string bar_text(double fraction, int width);
// "0:05", "12:07", "3:00:12"; "-" if unknown.
std::string duration_text(double seconds);

}  // namespace lockstep
