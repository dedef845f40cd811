#include "chat/text/marked_text.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace lockstep {

MarkedText::MarkedText(std::string text, bool is_from_input) : text_(std::move(text)) {
  if (!text_.empty()) runs_.push_back({text_.size(), is_from_input});
}

size_t MarkedText::memory_bytes() const {
  return sizeof(*this) + text_.size() + runs_.size() * sizeof(Run);
}

size_t MarkedText::run_at(size_t byte) const {
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), byte,
                                    [](size_t at, const Run& run) { return at < run.end; });
  return static_cast<size_t>(run - runs_.begin());
}

void MarkedText::append(std::string_view text, bool is_from_input) {
  if (text.empty()) return;
  text_ += text;
  if (!runs_.empty() && runs_.back().is_from_input == is_from_input) {
    runs_.back().end = text_.size();
  } else {
    runs_.push_back({text_.size(), is_from_input});
  }
}

void MarkedText::append_part(const MarkedText& other, size_t begin, size_t bytes) {
  LOCKSTEP_CHECK(begin <= other.size() && bytes <= other.size() - begin);
  LOCKSTEP_CHECK(&other != this);
  const size_t end = begin + bytes;
  for (size_t run = other.run_at(begin); begin < end; ++run) {
    const size_t stop = std::min(end, other.runs_[run].end);
    append(std::string_view(other.text_).substr(begin, stop - begin),
           other.runs_[run].is_from_input);
    begin = stop;
  }
}

MarkedText MarkedText::part(size_t begin, size_t bytes) const {
  MarkedText result;
  result.append_part(*this, begin, bytes);
  return result;
}

bool MarkedText::is_from_input(size_t at) const {
  LOCKSTEP_CHECK(at < text_.size());
  return runs_[run_at(at)].is_from_input;
}

bool MarkedText::has_input() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const Run& run) { return run.is_from_input; });
}

std::vector<PromptPiece> MarkedText::pieces() const {
  std::vector<PromptPiece> result;
  size_t begin = 0;
  for (const Run& run : runs_) {
    result.push_back({text_.substr(begin, run.end - begin), run.is_from_input});
    begin = run.end;
  }
  return result;
}

bool LimitedText::fits(size_t bytes) {
  if (overflowed_ || bytes > bytes_max_ - text_.size()) overflowed_ = true;
  return !overflowed_;
}

void LimitedText::append(std::string_view text, bool is_from_input) {
  if (fits(text.size())) text_.append(text, is_from_input);
}

void LimitedText::append_part(const MarkedText& text, size_t begin, size_t bytes) {
  if (fits(bytes)) text_.append_part(text, begin, bytes);
}

}  // namespace lockstep
