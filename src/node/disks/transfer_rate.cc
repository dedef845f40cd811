#include "node/disks/transfer_rate.h"

#include <algorithm>

namespace lockstep {

void TransferRate::note(Clock::time_point now, uint64_t bytes) {
  const bool is_close = notes_.size() > 1 && now - notes_[notes_.size() - 2].at < kNoteEvery;
  if (is_close) {
    notes_.back() = {now, std::max(bytes, notes_.back().bytes)};
  } else {
    notes_.push_back({now, std::max(bytes, notes_.back().bytes)});
  }
  // One note from before the span stays: what had been transferred when it began.
  while (notes_.size() > 2 && (now - notes_[1].at > kSpan || notes_.size() > kNotesMax)) {
    notes_.pop_front();
  }
}

double TransferRate::at(Clock::time_point now) const {
  const Clock::time_point begin = now - kSpan;
  const Note* before = &notes_.front();
  for (const Note& note : notes_) {
    if (note.at <= begin) before = &note;
  }
  const auto since = std::max(before->at, begin);
  const std::chrono::duration<double> seconds = now - since;
  if (seconds.count() <= 0) return 0;
  return static_cast<double>(notes_.back().bytes - before->bytes) / seconds.count();
}

}  // namespace lockstep
