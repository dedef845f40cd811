// links: grammar
// An untrusted schema is compiled, refused with a sentence or stopped at a limit; all that it
// allows is UTF-8 and JSON. The input is a schema, a line break, and bytes that choose a walk
// through it.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "grammar/automaton/matcher.h"
#include "grammar/schema/json_schema.h"

using namespace lockstep;

namespace {

// Follows allowed bytes, each selected by one of `choices`.
std::string walk(Matcher& matcher, std::string_view choices) {
  std::string text;
  for (const char choice : choices) {
    bool has_moved = false;
    for (int i = 0; i < 256 && !has_moved; ++i) {
      const char byte = static_cast<char>(static_cast<uint8_t>(choice) + i);
      has_moved = matcher.accept_bytes(std::string_view(&byte, 1));
      if (has_moved) text += byte;
    }
    LOCKSTEP_CHECK(has_moved || matcher.may_end());
    if (!has_moved) break;
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(input.find('\n'), input.size());
  const auto schema = parse_json(input.substr(0, line));
  if (!schema.ok()) return 0;
  for (const bool is_strict : {true, false}) {
    Grammar grammar;
    const auto built = add_json_schema(grammar, schema.value(), {.is_strict = is_strict});
    LOCKSTEP_CHECK(built.ok() || !built.error().message.empty());
    if (!built.ok()) continue;
    const auto compiled = compile_grammar(grammar, built.value().expression);
    if (!compiled.ok()) continue;
    Matcher matcher(compiled.value());
    const std::string text = walk(matcher, input.substr(line));
    if (!matcher.may_end()) continue;
    // Deep values and numbers beyond the largest double are JSON that parse_json() refuses.
    const bool is_extreme = text.size() > 60 || text.find_first_of("eE") != std::string::npos;
    LOCKSTEP_CHECK(is_valid_utf8(text) && (is_extreme || parse_json(text).ok()));
  }
  return 0;
}
