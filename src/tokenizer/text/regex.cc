#include "tokenizer/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <utility>

#include "base/check.h"
#include "base/threads/work.h"

#include "tokenizer/text/json_part.h"
#include "tokenizer/text/regex_dialect.h"

namespace lockstep {
namespace {

// Steps of one search and memory of the interpreter, so that hostile patterns terminate. PCRE2 does
// not say how many steps a search took: each limit is tried in turn, and those beyond the first are
// charged to the text. A search of a tokenizer that is not hostile takes tens of steps.
constexpr std::array<uint32_t, 4> kMatchSteps = {1'000, 16'000, 128'000, 1'000'000};
constexpr int64_t kTextSteps = 4'000'000;
constexpr int64_t kTextStepsPerByte = 256;
constexpr uint32_t kHeapKibibytesMax = 256 << 10;

struct PcreDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> buffer = {};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct RegexScratch::Impl {
  std::unique_ptr<pcre2_match_data, PcreDeleter> data;
  std::unique_ptr<pcre2_match_context, PcreDeleter> context;
  int64_t steps_left;
};

RegexScratch::RegexScratch(size_t text_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->data.reset(pcre2_match_data_create(1, nullptr));
  impl_->context.reset(pcre2_match_context_create(nullptr));
  LOCKSTEP_CHECK(impl_->data != nullptr && impl_->context != nullptr);
  pcre2_set_heap_limit(impl_->context.get(), kHeapKibibytesMax);
  impl_->steps_left = kTextSteps + kTextStepsPerByte * static_cast<int64_t>(text_bytes);
}
RegexScratch::~RegexScratch() = default;

struct Regex::Impl {
  std::unique_ptr<pcre2_code, PcreDeleter> code;
  bool has_jit = false;

  // PCRE2's answer: negative if nothing was found.
  int search(std::string_view text, size_t from, const RegexScratch::Impl& scratch) const;
};

Regex::Regex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kRegexBytesMax) return unsupported_part("regex", "of this length");
  const std::string translated = TRY(to_pcre2(pattern));
  auto impl = std::make_unique<Impl>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  impl->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                 &error, &offset, nullptr));
  if (impl->code == nullptr) {
    return Error{ErrorCode::kUnsupported, "the tokenizer's regex " + translated +
                                              " cannot be read: " + message_of(error) +
                                              " at byte " + std::to_string(offset)};
  }
  impl->has_jit = pcre2_jit_compile(impl->code.get(), PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(impl));
}

int Regex::Impl::search(std::string_view text, size_t from,
                        const RegexScratch::Impl& scratch) const {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (has_jit) {
    found = pcre2_jit_match(code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                            scratch.data.get(), scratch.context.get());
  }
  if (found != PCRE2_ERROR_JIT_STACKLIMIT) return found;
  // The interpreter uses the heap instead.
  return pcre2_match(code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                     scratch.data.get(), scratch.context.get());
}

Regex::Match Regex::next(std::string_view text, size_t from, RegexScratch& scratch) const {
  pcre2_match_data* data = scratch.impl_->data.get();
  int found = PCRE2_ERROR_MATCHLIMIT;
  for (size_t i = 0; i < kMatchSteps.size() && found == PCRE2_ERROR_MATCHLIMIT; ++i) {
    if (Work::is_over()) break;
    if (i > 0) scratch.impl_->steps_left -= kMatchSteps[i];
    if (i > 0 && scratch.impl_->steps_left < 0) break;
    pcre2_set_match_limit(scratch.impl_->context.get(), kMatchSteps[i]);
    found = impl_->search(text, from, *scratch.impl_);
  }
  if (found == PCRE2_ERROR_NOMATCH) return {Outcome::kNone, text.size(), text.size()};
  if (found < 0) return {Outcome::kGaveUp, text.size(), text.size()};
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data);
  // \K in a lookaround could yield bounds out of order or before `from`.
  if (bounds[0] < from || bounds[1] < bounds[0]) {
    return {Outcome::kGaveUp, text.size(), text.size()};
  }
  return {Outcome::kFound, bounds[0], bounds[1]};
}

}  // namespace lockstep
