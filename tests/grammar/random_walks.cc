// Writes random texts that constrained decoding may produce, for tests/grammar/validate_walks.py:
// each line of stdin is a schema, each line of stdout {"schema": index, "text": "..."} or, if the
// schema is refused, {"schema": index, "refused": "sentence"}.
//   random_walks WALKS_OF_EACH SEED
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "grammar/automaton/matcher.h"
#include "grammar/schema/json_schema.h"

namespace lockstep {
namespace {

constexpr size_t kTextBytesMax = 3000;
constexpr size_t kFreeBytes = 150;  // then closing tokens are preferred, so that walks end

// Bytes, and letters that make a whole key or constant likely.
std::string random_text(Matcher matcher, std::mt19937& random) {
  std::string text;
  while (text.size() < kTextBytesMax) {
    const bool is_late = text.size() > kFreeBytes;
    if (matcher.may_end() && (is_late || random() % 8 == 0)) return text;
    std::vector<char> allowed;
    std::vector<char> likely;
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      if (!matcher.accepts_bytes(std::string_view(&c, 1))) continue;
      allowed.push_back(c);
      const bool is_plain = byte >= 'a' && byte <= 'z';
      const bool closes = c == '"' || c == ']' || c == '}';
      if (is_late ? closes : (is_plain || closes || (c >= '0' && c <= '9'))) likely.push_back(c);
    }
    if (allowed.empty()) return matcher.may_end() ? text : "a dead end after " + text;
    const auto& from = !likely.empty() && random() % 4 != 0 ? likely : allowed;
    const char c = from[random() % from.size()];
    text += c;
    matcher.accept_bytes(std::string_view(&c, 1));
  }
  return {};
}

void answer(size_t index, const Json& schema, int walks, std::mt19937& random) {
  Grammar grammar;
  const auto built = add_json_schema(grammar, schema);
  auto compiled = built.ok() ? compile_grammar(grammar, built.value().expression)
                             : Result<std::shared_ptr<const CompiledGrammar>>(built.error());
  if (!compiled.ok()) {
    const std::string sentence = compiled.error().message;
    std::cout << dump_json(JsonObject{{"schema", index}, {"refused", sentence}}) << '\n';
    return;
  }
  const Matcher start(compiled.value());
  for (int i = 0; i < walks; ++i) {
    const std::string text = random_text(start.restarted(), random);
    if (text.empty()) continue;
    std::cout << dump_json(JsonObject{{"schema", index}, {"text", text}}) << '\n';
  }
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  const int walks = count > 1 ? std::atoi(arguments[1]) : 20;
  std::mt19937 random(count > 2 ? static_cast<uint32_t>(std::atoi(arguments[2])) : 1);
  std::string line;
  for (size_t index = 0; std::getline(std::cin, line); ++index) {
    const auto schema = lockstep::parse_json(line);
    if (!schema.ok()) return 1;
    lockstep::answer(index, schema.value(), walks, random);
  }
  return 0;
}
