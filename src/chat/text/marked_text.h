// Text that records, for each run of bytes, whether it came from an input value (a message, a tool)
// or from the template. Used by the template interpreter, so that the tokenizer later accepts
// special tokens only in template text. UTF-8; callers cut at characters. No locking.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Limit of a rendered prompt, and of a value that a template prints.
inline constexpr size_t kPromptBytesMax = size_t{64} << 20;

struct PromptPiece {
  std::string text;
  bool is_from_input;
};

class MarkedText {
 public:
  MarkedText() = default;
  MarkedText(std::string text, bool is_from_input);

  const std::string& text() const { return text_; }
  size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  // Memory that the object uses, for limits.
  size_t memory_bytes() const;

  void append(std::string_view text, bool is_from_input);
  void append(const MarkedText& other) { append_part(other, 0, other.size()); }
  // Bytes [begin, begin + bytes) of `other`; `begin` may be its end.
  void append_part(const MarkedText& other, size_t begin, size_t bytes);
  MarkedText part(size_t begin, size_t bytes) const;

  // `at` is a byte inside the text.
  bool is_from_input(size_t at) const;
  bool has_input() const;  // any of it
  std::vector<PromptPiece> pieces() const;

 private:
  struct Run {
    size_t end;  // one past the run's last byte
    bool is_from_input;
  };

  size_t run_at(size_t byte) const;

  std::string text_;
  std::vector<Run> runs_;  // ascending, neighbours differ, the last ends with the text
};

// Collects text up to a limit; drops the rest and sets overflowed().
class LimitedText {
 public:
  explicit LimitedText(size_t bytes_max) : bytes_max_(bytes_max) {}

  void append(std::string_view text, bool is_from_input);
  void append(const MarkedText& text) { append_part(text, 0, text.size()); }
  void append_part(const MarkedText& text, size_t begin, size_t bytes);

  bool overflowed() const { return overflowed_; }
  MarkedText& text() { return text_; }

 private:
  bool fits(size_t bytes);

  size_t bytes_max_;
  bool overflowed_ = false;
  MarkedText text_;
};

}  // namespace lockstep
