// RateWindow: how fast a count grows, over the last seconds. Time counts, not the notes: the rate
// falls to 0 while the count stands still, even if nobody notes that. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace lockstep {

class RateWindow {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kSpan{5};
  static constexpr std::chrono::milliseconds kNoteEvery{200};  // closer ones replace the last one

  // The count so far. A smaller one than before begins again.
  void note(Time now, uint64_t count);
  // By steps per second; 0 before the second note.
  double at(Time now) const;

 private:
  struct Note {
    Time at;
    uint64_t count;
  };
  // The oldest first; all but the first within kSpan of the last, so kSpan / kNoteEvery + 2 at
  // most.
  std::deque<Note> notes_;
};

}  // namespace lockstep
