#include "base/meters/rate_window.h"

namespace lockstep {

void RateWindow::note(Time now, uint64_t count) {
  if (!notes_.empty() && count < notes_.back().count) notes_.clear();
  const bool replaces = notes_.size() > 1 && now - notes_[notes_.size() - 2].at < kNoteEvery;
  if (replaces) {
    notes_.back() = {now, count};
  } else {
    notes_.push_back({now, count});
  }
  // The one before the span is where the span's growth began.
  while (notes_.size() > 2 && now - notes_[1].at >= kSpan) notes_.pop_front();
}

double RateWindow::at(Time now) const {
  if (notes_.empty()) return 0;
  const Note* from = &notes_.front();
  for (const Note& note : notes_) {
    if (now - note.at >= kSpan) from = &note;
  }
  const double seconds = std::chrono::duration<double>(now - from->at).count();
  if (seconds <= 0) return 0;
  return static_cast<double>(notes_.back().count - from->count) / seconds;
}

}  // namespace lockstep
