// The rate of a transfer over the last seconds, from a count of bytes that is noted now and then.
// It falls to 0 while nothing arrives: time counts, not the notes. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace lockstep {

class TransferRate {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kSpan{5};
  static constexpr std::chrono::milliseconds kNoteEvery{100};  // closer notes replace the last one
  static constexpr size_t kNotesMax = kSpan / kNoteEvery + 2;

  // Nothing was transferred before this.
  explicit TransferRate(Clock::time_point now) : notes_{{now, 0}} {}

  // `bytes` in all so far; they never become fewer.
  void note(Clock::time_point now, uint64_t bytes);
  // Bytes per second.
  double at(Clock::time_point now) const;

 private:
  struct Note {
    Clock::time_point at;
    uint64_t bytes;
  };
  std::deque<Note> notes_;  // the oldest first; never empty
};

}  // namespace lockstep
