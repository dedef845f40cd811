// The cost of compiling a grammar: all work is charged to one budget, which ends it with an error,
// and cancelling the request ends it too. tests/growth checks that the charges match the real cost.
#include <fmt/format.h>

#include <chrono>

#include "base/threads/work.h"
#include "grammar/constraint.h"
#include "grammar/dfa/code_points.h"
#include "grammar/grammar_checks.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

std::string listed(int count, const char* one) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += (i == 0 ? "" : ",") + fmt::format(fmt::runtime(one), i);
  }
  return all;
}

std::string chinese_letters(uint32_t count) {
  std::string all;
  for (uint32_t i = 0; i < count; ++i) {
    all += i == 0 ? "\"" : ",\"";
    append_code_point(all, 0x4E00 + i);
    all += '"';
  }
  return all;
}

std::string sentence_of_work(const std::string& schema) {
  const auto compiled = compile_schema(schema, {.is_strict = false});
  REQUIRE_FALSE(compiled.ok());
  CHECK(compiled.error().code == ErrorCode::kExhausted);
  return compiled.error().message;
}

constexpr const char* kTooMuch =
    "the grammar needs more work to compile than the limit of 20000000 steps; make it simpler";

Dfa words(std::initializer_list<const char*> texts) {
  std::vector<std::vector<uint32_t>> all;
  for (const char* text : texts) all.push_back(code_points(text));
  WorkBudget budget;
  return dfa_of_words(all, budget).value();
}

}  // namespace

TEST_CASE("an enum that is combined with itself repeatedly is refused") {
  std::string schema = R"({"$defs":{"e":{"enum":[)" + chinese_letters(9000) + "]}},\"allOf\":[";
  for (int i = 0; i < 240; ++i)
    schema += i == 0 ? R"({"$ref":"#/$defs/e"})" : R"(,{"$ref":"#/$defs/e"})";
  CHECK(sentence_of_work(schema + "]}") == kTooMuch);
}

TEST_CASE("objects with many keys that exclude each other are refused") {
  std::string keys;
  for (int i = 0; i < 19'000; ++i) {
    const auto letter = [i](int place) { return static_cast<char>('a' + i / place % 26); };
    keys +=
        fmt::format(R"(,"{}{}{}{}":1)", letter(1), letter(26), letter(676), i < 17'576 ? "" : "A");
  }
  std::string schema = R"({"oneOf":[)";
  for (int i = 0; i < 6; ++i) {
    schema += fmt::format(R"({}{{"type":"object","properties":{{"kind{}":{{}}{}}}}})",
                          i == 0 ? "" : ",", i, keys);
  }
  CHECK(sentence_of_work(schema + "]}") == kTooMuch);
}

TEST_CASE("bounds and constants use the same budget as the rest") {
  CHECK(sentence_of_work(R"({"type":"object","properties":{)" +
                         listed(3'000, R"("p{}":{{"minimum":123456789012345678}})") + "}}") ==
        kTooMuch);
  CHECK(sentence_of_work(R"({"oneOf":[)" + listed(20'000, R"({{"title":"{}","type":"null"}})") +
                         "]}") == kTooMuch);
}

TEST_CASE("long enums and many alternatives compile") {
  CHECK(compile_schema(R"({"enum":[)" + listed(5000, "\"word{}\"") + "]}").ok());
  CHECK(compile_schema(R"({"enum":[)" + listed(1000, "{}") + "]}").ok());
  CHECK(compile_schema(R"({"anyOf":[)" + listed(1000, R"({{"const":"word{}"}})") + "]}").ok());
  CHECK(compile_schema(R"({"oneOf":[)" + listed(250, R"({{"const":"word{}"}})") + "]}").ok());
  CHECK(compile_schema(R"({"type":"object","properties":{)" +
                       listed(500, R"("p{}":{{"type":"string","pattern":"^[a-z]{{0,60}}$"}})") +
                       "}}")
            .ok());
}

TEST_CASE("all parts of a constraint share one budget") {
  const std::string pattern =
      R"({{"json_schema":{{"type":"string","pattern":"(a|b)*a(a|b){{9}}{}"}}}})";
  const auto loaded = Tokenizer::load(LOCKSTEP_SOURCE_DIR "/models/stories260K");
  REQUIRE(loaded.ok());
  const Tokenizer& tokenizer = *loaded.value();
  const auto few =
      compile_constraint("{\"choice\":[" + listed(4, pattern.c_str()) + "]}", tokenizer);
  CHECK(few.ok());
  const auto many =
      compile_constraint("{\"choice\":[" + listed(2000, pattern.c_str()) + "]}", tokenizer);
  REQUIRE_FALSE(many.ok());
  CHECK(many.error().message.ends_with(kTooMuch));
}

TEST_CASE("a cancelled request stops compiling") {
  Work work(std::chrono::hours(1));
  const Work::Scope scope(work);
  work.cancel();
  const auto compiled = compile_schema(R"({"enum":[)" + listed(5000, "\"word{}\"") + "]}");
  REQUIRE_FALSE(compiled.ok());
  CHECK(compiled.error().code == ErrorCode::kCancelled);
  const auto regex = compile_regex("(a|b)*a(a|b){9}");
  REQUIRE_FALSE(regex.ok());
  CHECK(regex.error().code == ErrorCode::kCancelled);
}

TEST_CASE("a union of automata merges equal states") {
  WorkBudget budget;
  const auto united = join(words({"ab", "cb", "db"}), words({"eb", "b"}), DfaJoin::kEither, budget);
  REQUIRE(united.ok());
  CHECK(united.value().states.size() == 3);  // nothing read, b to come, the end
  const auto any = dfa_of_length(SymbolSet::scalar_values(), 0, 390, budget);
  REQUIRE(any.ok());
  const auto same = join(any.value(), any.value(), DfaJoin::kBoth, budget);
  REQUIRE(same.ok());
  CHECK(same.value().states.size() == 391);  // a chain without equal states
  const auto none = join(any.value(), any.value(), DfaJoin::kFirstOnly, budget);
  REQUIRE(none.ok());
  CHECK(none.value().empty());
}

}  // namespace lockstep
