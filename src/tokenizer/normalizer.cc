#include "tokenizer/normalizer.h"

#include <utility>

#include "tokenizer/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kPart = "normalizer";
constexpr size_t kStepsMax = 64;
constexpr size_t kPrependBytesMax = 64;

}  // namespace

Result<Normalizer> Normalizer::read(const Json* value) {
  Normalizer normalizer;
  if (is_missing(value)) return normalizer;
  TRY(normalizer.add(*value));
  std::vector<Replacement> replacements;
  for (const Replacement& step : normalizer.steps_) {
    if (!step.pattern.empty()) replacements.push_back(step);
  }
  TRY(check_growth(kPart, replacements));
  return normalizer;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string normalized(text);
  for (const Replacement& step : steps_) {
    if (normalized.empty()) break;
    normalized = step.pattern.empty() ? step.content + normalized : replace_all(normalized, step);
  }
  return normalized;
}

// JSON's depth limit bounds the recursion through sequences.
Status Normalizer::add(const Json& value) {
  const std::string_view type = TRY(type_of(kPart, value));
  if (type == "Sequence") return add_sequence(value);
  if (steps_.size() == kStepsMax) return unsupported_part(kPart, "chain of so many steps");
  if (type == "Prepend") {
    std::string content = TRY(required_string(kPart, value, "prepend"));
    if (content.size() > kPrependBytesMax) return unsupported_part(kPart, "long Prepend");
    steps_.push_back({"", std::move(content)});
    return Ok{};
  }
  if (type == "Replace") {
    steps_.push_back(TRY(read_replacement(kPart, value)));
    return Ok{};
  }
  return unsupported_part(kPart, type);
}

Status Normalizer::add_sequence(const Json& value) {
  const Json* parts = find(value, "normalizers");
  if (parts == nullptr || !parts->is_array()) return corrupt_part(kPart, "Sequence has no parts");
  for (const Json& part : parts->get_array()) TRY(add(part));
  return Ok{};
}

}  // namespace lockstep
