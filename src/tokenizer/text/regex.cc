#include "tokenizer/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <utility>

#include "base/check.h"

#include "tokenizer/text/json_part.h"
#include "tokenizer/text/regex_dialect.h"

namespace lockstep {
namespace {

// Steps of one search and memory of the interpreter, so that hostile patterns terminate.
constexpr uint32_t kMatchStepsMax = 1'000'000;
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
};

RegexScratch::RegexScratch() : impl_(std::make_unique<Impl>()) {
  impl_->data.reset(pcre2_match_data_create(1, nullptr));
  LOCKSTEP_CHECK(impl_->data != nullptr);
}
RegexScratch::~RegexScratch() = default;

struct Regex::Impl {
  std::unique_ptr<pcre2_code, PcreDeleter> code;
  std::unique_ptr<pcre2_match_context, PcreDeleter> context;
  bool has_jit = false;
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
  impl->context.reset(pcre2_match_context_create(nullptr));
  if (impl->context == nullptr) {
    return Error{ErrorCode::kExhausted, "out of memory for the tokenizer's regex"};
  }
  pcre2_set_match_limit(impl->context.get(), kMatchStepsMax);
  pcre2_set_heap_limit(impl->context.get(), kHeapKibibytesMax);
  return Regex(std::move(impl));
}

Regex::Match Regex::next(std::string_view text, size_t from, RegexScratch& scratch) const {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_match_data* data = scratch.impl_->data.get();
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (impl_->has_jit) {
    found = pcre2_jit_match(impl_->code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data,
                            impl_->context.get());
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter uses the heap instead
    found = pcre2_match(impl_->code.get(), subject, text.size(), from,
                        PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, impl_->context.get());
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
