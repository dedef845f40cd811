// links: grammar
// An untrusted regex is compiled, refused with a sentence or stopped at a limit. The input is a
// regex, a line break, and a text; a full match is also found by a search.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "grammar/dfa/code_points.h"
#include "grammar/regex/regex.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(input.find('\n'), input.size());
  WorkBudget budget(kCompileWorkMax / 10);
  const auto whole = regex_dfa(input.substr(0, line), RegexMatch::kWhole, budget);
  const auto search = regex_dfa(input.substr(0, line), RegexMatch::kSearch, budget);
  if (!whole.ok() || !search.ok() || line == input.size()) return 0;
  const std::string_view text = input.substr(line + 1);
  if (!is_valid_utf8(text)) return 0;
  const auto points = code_points(text);
  LOCKSTEP_CHECK(!dfa_accepts(whole.value(), points) || dfa_accepts(search.value(), points));
  return 0;
}
