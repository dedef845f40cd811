// For the tests of this folder: building and querying a grammar in one line.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton/matcher.h"
#include "grammar/ebnf.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/json_schema.h"

namespace lockstep {

using Compiled = std::shared_ptr<const CompiledGrammar>;

inline Result<Compiled> compile_schema(std::string_view schema,
                                       const JsonSchemaOptions& options = {}) {
  Grammar grammar;
  const Json json = TRY(parse_large_json(schema));
  const JsonSchemaGrammar built = TRY(add_json_schema(grammar, json, options));
  return compile_grammar(grammar, built.expression);
}

inline Result<Compiled> compile_ebnf(std::string_view text) {
  Grammar grammar;
  return compile_grammar(grammar, TRY(add_ebnf(grammar, text)));
}

inline Result<Compiled> compile_regex(std::string_view pattern) {
  Grammar grammar;
  return compile_grammar(grammar, TRY(add_regex(grammar, pattern)));
}

inline bool accepts(const Compiled& grammar, std::string_view text) {
  Matcher matcher(grammar);
  return matcher.accept_bytes(text) && matcher.may_end();
}

inline Compiled grammar_of(Result<Compiled> result) {
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  return result.value();
}

inline bool schema_accepts(std::string_view schema, std::string_view text) {
  return accepts(grammar_of(compile_schema(schema)), text);
}
inline bool regex_accepts(std::string_view pattern, std::string_view text) {
  return accepts(grammar_of(compile_regex(pattern)), text);
}
inline bool ebnf_accepts(std::string_view grammar, std::string_view text) {
  return accepts(grammar_of(compile_ebnf(grammar)), text);
}

template <class T>
std::string error_of(const Result<T>& result) {
  return result.ok() ? "" : result.error().message;
}

inline bool has_bit(const std::vector<uint64_t>& words, int32_t token) {
  return (words[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
}

}  // namespace lockstep
