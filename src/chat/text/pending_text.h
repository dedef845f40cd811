// PendingText: model output that has arrived and is not parsed yet, and the search for markers in
// it, which may be incomplete. Used by the output readers; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr std::string_view kBlanks = " \t\r\n";

class PendingText {
 public:
  void append(std::string_view text) { text_ += text; }
  // No more text will come, so partial markers are plain text. `is_truncated`: the model was cut
  // off.
  void end(bool is_truncated) {
    has_ended_ = true;
    is_truncated_ = is_truncated;
  }
  bool has_ended() const { return has_ended_; }
  bool is_truncated() const { return is_truncated_; }

  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  bool empty() const { return at_ == text_.size(); }
  void take(size_t bytes) { at_ += bytes; }
  // Consumes white space and characters of `more`. False if no text is left after it yet.
  bool skip_blanks(std::string_view more = {});

  // Keeps the text from here on, until unmark().
  void mark() { mark_ = at_; }
  void unmark() { mark_ = kNone; }
  bool is_marked() const { return mark_ != kNone; }
  std::string_view since_mark() const;  // up to the current position
  size_t held_bytes() const { return text_.size() - (is_marked() ? mark_ : at_); }

  // Drops text that is neither pending nor marked.
  void compact();

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::string text_;
  size_t at_ = 0;
  size_t mark_ = kNone;
  bool has_ended_ = false;
  bool is_truncated_ = false;
};

// The marker at the front of a text.
struct MarkerMatch {
  enum class Kind { kNone, kPartial, kWhole };
  bool is_whole() const { return kind == Kind::kWhole; }
  bool is_partial() const { return kind == Kind::kPartial; }

  Kind kind = Kind::kNone;
  size_t index = 0;  // of the marker that matched
  size_t bytes = 0;
};

// The longest of `markers` at the front of the pending text after `skipped` bytes; kPartial while a
// longer match is possible.
MarkerMatch match_front(const PendingText& pending, const std::vector<std::string_view>& markers,
                        size_t skipped = 0);

// The first of `markers` in `text`, the longest of those that begin there.
struct MarkerPlace {
  size_t at = std::string_view::npos;
  size_t index = 0;
  bool found() const { return at != std::string_view::npos; }
};
MarkerPlace find_marker(std::string_view text, const std::vector<std::string_view>& markers);

// Bytes at the end of `text` that may begin one of `markers`.
size_t partial_marker_tail(std::string_view text, const std::vector<std::string_view>& markers);

std::string_view without_blanks(std::string_view text);  // at both ends
size_t blank_tail(std::string_view text);                // bytes of white space at the end

}  // namespace lockstep
