// PendingText: output of a model that has come and is not understood yet, and the search for
// markers in it where any of them may still be incomplete. Used by the readers of tool calls; one
// thread.
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
  // No more will come: what could still have become something is what it is. `is_truncated`: the
  // model would have gone on.
  void end(bool is_truncated) {
    has_ended_ = true;
    is_truncated_ = is_truncated;
  }
  bool has_ended() const { return has_ended_; }
  bool is_truncated() const { return is_truncated_; }

  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  bool empty() const { return at_ == text_.size(); }
  void take(size_t bytes) { at_ += bytes; }
  // Takes white space and any of `more`. False if nothing is left behind it yet.
  bool skip_blanks(std::string_view more = {});

  // From here on the text is kept, until unmark().
  void mark() { mark_ = at_; }
  void unmark() { mark_ = kNone; }
  bool is_marked() const { return mark_ != kNone; }
  std::string_view since_mark() const;  // up to what has been taken
  size_t held_bytes() const { return text_.size() - (is_marked() ? mark_ : at_); }

  // Drops what is neither pending nor marked.
  void compact();

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::string text_;
  size_t at_ = 0;
  size_t mark_ = kNone;
  bool has_ended_ = false;
  bool is_truncated_ = false;
};

// What a text begins with.
struct MarkerMatch {
  enum class Kind { kNone, kPartial, kWhole };
  bool is_whole() const { return kind == Kind::kWhole; }
  bool is_partial() const { return kind == Kind::kPartial; }

  Kind kind = Kind::kNone;
  size_t index = 0;  // of the marker that is there whole
  size_t bytes = 0;
};

// The longest of `markers` at the front of the pending text, `skipped` bytes of it left out;
// kPartial while one may still come.
MarkerMatch match_front(const PendingText& pending, const std::vector<std::string_view>& markers,
                        size_t skipped = 0);

// The first of `markers` in `text`, the longest of those that begin there.
struct MarkerPlace {
  size_t at = std::string_view::npos;
  size_t index = 0;
  bool found() const { return at != std::string_view::npos; }
};
MarkerPlace find_marker(std::string_view text, const std::vector<std::string_view>& markers);

// The bytes at the end of `text` that may become one of `markers`.
size_t partial_marker_tail(std::string_view text, const std::vector<std::string_view>& markers);

std::string_view without_blanks(std::string_view text);  // at both ends
size_t blank_tail(std::string_view text);                // bytes of white space at the end

}  // namespace lockstep
