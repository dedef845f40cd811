// Regex: a pattern of a pre-tokenizer or normalizer, with the semantics of Oniguruma (Hugging Face)
// and Python's regex (tiktoken): Unicode classes, `$` at the end of a line. The only user of PCRE2.
// Immutable: any thread may search.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

inline constexpr size_t kRegexBytesMax = 64 << 10;

// Buffers that PCRE2 writes, and the steps left for the searches in one text; used by one thread.
class RegexScratch {
 public:
  // For a text of this many bytes.
  explicit RegexScratch(size_t text_bytes);
  ~RegexScratch();
  RegexScratch(const RegexScratch&) = delete;
  RegexScratch& operator=(const RegexScratch&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  friend class Regex;
};

class Regex {
 public:
  enum class Outcome {
    kFound,
    kNone,
    // The search exceeded its own limit of steps or the text's, or the thread's work is over
    // (base/threads/work.h).
    kGaveUp,
  };
  struct Match {
    Outcome outcome;
    size_t begin;
    size_t end;  // may be `begin`
  };

  // kUnsupported with the reason if the pattern is invalid.
  static Result<Regex> compile(std::string_view pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // The first match at or after `from`. `text` is valid UTF-8, `from` the beginning of a character.
  Match next(std::string_view text, size_t from, RegexScratch& scratch) const;

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
