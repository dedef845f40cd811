// Regex: a pattern of a pre-tokenizer or normalizer, as Oniguruma (Hugging Face) and Python's regex
// (tiktoken) read it: Unicode classes, `$` at the end of a line. The only place that sees PCRE2.
// Immutable: any thread may search.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

inline constexpr size_t kRegexBytesMax = 64 << 10;

// Pass it from search to search in one thread; it holds what PCRE2 writes.
class RegexScratch {
 public:
  RegexScratch();
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
    kGaveUp,  // the pattern needs more steps than a pre-tokenizer may take on this text
  };
  struct Match {
    Outcome outcome;
    size_t begin;
    size_t end;  // may be `begin`
  };

  // kUnsupported with what is wrong with the pattern.
  static Result<Regex> compile(std::string_view pattern);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // The first match at or behind `from`. `text` is valid UTF-8, `from` the beginning of a
  // character.
  Match next(std::string_view text, size_t from, RegexScratch& scratch) const;

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
