#include "cli/bench/load_plan.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/hash.h"

namespace lockstep {
namespace {

constexpr int kTokensMax = 10'000'000;

// 0 <= x < 1
double next_share(uint64_t& state) {
  return static_cast<double>(next_random(state) >> 11) * 0x1p-53;
}

uint64_t stream_of(uint64_t seed, uint64_t kind, uint64_t number) {
  uint64_t state = seed * 0x2545f4914f6cdd1d + kind;
  state = next_random(state) + number;
  return next_random(state);
}

// Words that are one token in most tokenizers.
constexpr std::array<std::string_view, 64> kWords = {
    "the",  "of",    "and",   "to",   "in",   "is",    "you",   "that",  "it",   "he",    "was",
    "for",  "on",    "are",   "as",   "with", "his",   "they",  "at",    "be",   "this",  "have",
    "from", "or",    "one",   "had",  "by",   "word",  "but",   "not",   "what", "all",   "were",
    "we",   "when",  "your",  "can",  "said", "there", "use",   "an",    "each", "which", "she",
    "do",   "how",   "their", "if",   "will", "up",    "other", "about", "out",  "many",  "then",
    "them", "these", "so",    "some", "her",  "would", "make",  "like",  "him"};

}  // namespace

Result<LengthRange> parse_length_range(std::string_view text, std::string_view what) {
  const Error bad{
      ErrorCode::kInvalidArgument,
      fmt::format(
          "{} {} is not a length: write a number such as 128 or a range such as 64-256, at most {}",
          what, text, kTokensMax)};
  LengthRange range;
  const char* const end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, range.least);
  if (parsed.ec != std::errc()) return bad;
  range.most = range.least;
  if (parsed.ptr != end) {
    if (*parsed.ptr != '-') return bad;
    parsed = std::from_chars(parsed.ptr + 1, end, range.most);
  }
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == end;
  if (!is_whole || range.least < 1 || range.most < range.least || range.most > kTokensMax) {
    return bad;
  }
  return range;
}

LoadPlan::LoadPlan(const LoadShape& shape) : shape_(shape), random_(stream_of(shape.seed, 0, 0)) {}

PlannedRequest LoadPlan::next() {
  if (shape_.rate > 0) at_s_ += -std::log1p(-next_share(random_)) / shape_.rate;
  PlannedRequest request;
  request.at_s = at_s_;
  request.prompt_tokens = length(shape_.prompt_tokens);
  request.new_tokens = length(shape_.new_tokens);
  request.number = count_++;
  return request;
}

int LoadPlan::length(const LengthRange& range) {
  const double count = range.most - range.least + 1;
  return range.least + static_cast<int>(next_share(random_) * count);
}

std::vector<uint32_t> LoadPlan::choices(const PlannedRequest& request, uint32_t count) const {
  const auto prefix = request.number % static_cast<uint64_t>(shape_.prefix_count);
  uint64_t shared = stream_of(shape_.seed, 1, prefix);
  uint64_t own = stream_of(shape_.seed, 2, request.number);
  const int shared_tokens =
      static_cast<int>(std::lround(shape_.shared_prefix * request.prompt_tokens));
  std::vector<uint32_t> chosen;
  chosen.reserve(static_cast<size_t>(request.prompt_tokens));
  for (int i = 0; i < request.prompt_tokens; ++i) {
    const uint64_t random = next_random(i < shared_tokens ? shared : own);
    chosen.push_back(static_cast<uint32_t>(random % count));
  }
  return chosen;
}

std::vector<int32_t> LoadPlan::prompt_ids(const PlannedRequest& request) const {
  std::vector<int32_t> ids;
  for (const uint32_t choice : choices(request, static_cast<uint32_t>(shape_.token_count))) {
    ids.push_back(shape_.first_token + static_cast<int32_t>(choice));
  }
  return ids;
}

std::string LoadPlan::prompt_text(const PlannedRequest& request) const {
  std::string text;
  for (const uint32_t choice : choices(request, static_cast<uint32_t>(kWords.size()))) {
    if (!text.empty()) text += ' ';
    text += kWords[choice];
  }
  return text;
}

}  // namespace lockstep
