// Replacement: one "Replace" of a normalizer or decoder, with a fixed string as its pattern.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace lockstep {

// The factor by which the replacements of one part may grow a text: an untrusted tokenizer.json
// must not turn a short prompt into gigabytes.
inline constexpr size_t kTextGrowthMax = 64;

struct Replacement {
  std::string pattern;  // not empty
  std::string content;
};

// `part` names the normalizer or decoder for the error.
Result<Replacement> read_replacement(std::string_view part, const Json& value);

// kUnsupported if the replacements in sequence can grow a text beyond kTextGrowthMax.
Status check_growth(std::string_view part, const std::vector<Replacement>& replacements);

// Stops replacing before the result would exceed `bytes_max`.
std::string replace_all(std::string_view text, const Replacement& replacement,
                        size_t bytes_max = std::string::npos);

}  // namespace lockstep
