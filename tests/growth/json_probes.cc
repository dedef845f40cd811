// The JSON parser and writer, and checks that traverse values: many small ones, one long one, many
// names, repeated names, the deepest nesting. Also the test's own controls.
#include <fmt/format.h>

#include "growth/probe.h"
#include "json/json.h"
#include "support/colliding_keys.h"

namespace lockstep {
namespace {

bool parses_json(const std::string& text) {
  return parse_json(text).ok();
}
bool parses_json_strictly(const std::string& text) {
  return parse_json(text, DuplicateKeys::kRefuse).ok();
}

Reading writing(const std::string& text) {
  auto value = parse_json(text);
  if (!value.ok()) return [] { return false; };
  return [json = std::move(value.value())] { return !dump_json(json).empty(); };
}

std::string names(size_t count) {
  return "{" + listed(count, ",", [](size_t i) { return fmt::format("\"k{}\":{}", i, i); }) + "}";
}

std::string colliding(size_t count) {
  return object_of(colliding_keys(count));
}

}  // namespace

Probes json_probes() {
  return {
      text_probe(
          "json: small numbers", 4000, [](size_t n) { return "[" + repeated("1,", n) + "2.5e3]"; },
          parses_json),
      text_probe(
          "json: one long string", 60'000,
          [](size_t n) { return "\"" + repeated("a\\n\\u00e9", n / 4) + "\""; }, parses_json),
      text_probe(
          "json: one long number", 20'000, [](size_t n) { return repeated("1", n); }, parses_json),
      text_probe("json: distinct names", 1000, names, parses_json),
      text_probe("json: distinct names, refusing equal ones", 1000, names, parses_json_strictly),
      text_probe("json: names that collide", 4096, colliding, parses_json),
      text_probe("json: names that collide, in a large object", 12288, colliding,
                 [](const std::string& text) { return parse_large_json(text).ok(); }),
      text_probe("json: distinct names of a large object", 5000, names,
                 [](const std::string& text) { return parse_large_json(text).ok(); }),
      text_probe(
          "json: objects with many names", 40,
          [](size_t n) { return "[" + repeated(names(50) + ",", n) + "0]"; }, parses_json),
      text_probe(
          "json: equal names", 1000,
          [](size_t n) { return "{" + repeated("\"a\":1,", n) + "\"b\":2}"; }, parses_json),
      text_probe(
          "json: nested objects side by side", 300,
          [](size_t n) {
            const std::string deep = repeated("[", 60) + "1" + repeated("]", 60);
            return "[" + repeated(deep + ",", n) + "0]";
          },
          parses_json),
      text_probe(
          "json: too deep", 20'000, [](size_t n) { return repeated("[", n); }, parses_json),
      text_probe(
          "json: spaces", 60'000, [](size_t n) { return repeated(" \n", n / 2) + "1"; },
          parses_json),
      {"json writer: names and numbers", 1000, [](size_t n) { return writing(names(n)); }},
      {"json writer: characters to escape", 20'000,
       [](size_t n) { return writing("\"" + repeated("\\u0001\\\"", n) + "\""); }},
      text_probe(
          "json writer: a string literal", 60'000,
          [](size_t n) { return repeated("\n\"é", n / 4); },
          [](const std::string& text) {
            std::string out;
            append_json_string(out, text);
            return !out.empty();
          }),
  };
}

Probes control_probes() {
  const auto loops = [](bool is_square) {
    return [is_square](size_t n) -> Reading {
      return [is_square, n] {
        // Work like a parser's: mostly linear, with a search that hardly counts in small texts.
        volatile size_t sum = 0;
        for (size_t i = 0; i < n; ++i) {
          for (size_t k = 0; k < 200; ++k) sum = sum + k;
          for (size_t k = 0; k < (is_square ? i / 4 : 0); ++k) sum = sum + k;
        }
        return true;
      };
    };
  };
  return {{"control: quadratic", 1000, loops(true)}, {"control: linear", 1000, loops(false)}};
}

}  // namespace lockstep
