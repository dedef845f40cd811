// Grammars: the cost of constrained decoding with a large vocabulary, over schemas from JSON Lines
// files or arrays in JSON files.
//   grammar_bench [--tokenizer FILE] [--schemas FILE]... [--slow US] [--json]
// Each instance of each schema is tokenized and fed to a matcher: the time to accept a token, the
// time of the mask before it (nothing is kept between instances), and the time to compile a schema.
// Then masks along random walks of 60 tokens, and the same for the recorded outputs of every model
// family under the constraint of an answer that may call tools.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "chat/constraints/answer_constraint.h"
#include "grammar/automaton/matcher.h"
#include "grammar/constraint.h"
#include "grammar/schema/json_schema.h"
#include "json/json_file.h"
#include "support/qwen_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

// This thread's time, which excludes other load of the machine; reading it takes about 0.3 us, so
// the shortest times are read from the wall clock.
enum class Clock { kThread, kWall };

double now_us(Clock clock) {
  timespec time{};
  clock_gettime(clock == Clock::kThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

class Times {
 public:
  explicit Times(std::string name, Clock clock = Clock::kThread)
      : name_(std::move(name)), clock_(clock) {}

  template <class Work>
  auto measure(Work&& work) {
    const double begin = now_us(clock_);
    auto result = work();
    values_.push_back(now_us(clock_) - begin);
    return result;
  }
  double last() const { return values_.back(); }

  void print() {
    fmt::print("{:28} {:>9} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}\n", name_, values_.size(),
               at(0.5), at(0.9), at(0.99), at(1));
  }
  JsonObject json() {
    return {{"name", name_},     {"count", values_.size()}, {"p50_us", at(0.5)},
            {"p90_us", at(0.9)}, {"p99_us", at(0.99)},      {"worst_us", at(1)}};
  }

 private:
  double at(double share) {
    if (values_.empty()) return 0;
    std::sort(values_.begin(), values_.end());
    const auto index = static_cast<size_t>(share * static_cast<double>(values_.size()));
    return values_[std::min(index, values_.size() - 1)];
  }

  std::string name_;
  Clock clock_;
  std::vector<double> values_;
};

struct Case {
  Json schema;
  std::vector<std::string> texts;
};

// {"schema", "valid"} or, as in a test suite, {"schema", "tests": [[description, data, valid]]}.
void add_cases(const std::string& path, std::vector<Case>& cases) {
  const auto file = read_json_file(path);
  if (!file.ok() || !file.value().is_array()) {
    fmt::print(stderr, "{} holds no array of JSON\n", path);
    return;
  }
  for (const Json& entry : file.value().get_array()) {
    Case one{*find(entry, "schema"), {}};
    if (const Json* valid = find(entry, "valid")) {
      for (const Json& instance : valid->get_array()) one.texts.push_back(dump_json(instance));
    }
    if (const Json* tests = find(entry, "tests")) {
      for (const Json& test : tests->get_array()) {
        const Json* data = test.is_array() ? &test.get_array()[1] : find(test, "data");
        one.texts.push_back(dump_json(*data));
      }
    }
    cases.push_back(std::move(one));
  }
}

struct Bench {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const VocabularyTrie> trie;
  Times compile{"compile a schema"};
  Times accept_first{"accept, seen never"};
  Times accept{"accept, seen before", Clock::kWall};
  Times mask{"build a mask"};
  Times kept{"mask on a walk"};
  Times call_compile{"compile an answer"};
  Times call_accept_first{"answer: accept, seen never"};
  Times call_accept{"answer: accept, seen before", Clock::kWall};
  Times call_mask{"answer: build a mask"};
  int compiled_count = 0;
  double slow_us = 1e9;  // masks that take longer are printed

  void run(const Case& one) {
    const auto compiled = compile.measure([&]() -> Result<std::shared_ptr<const CompiledGrammar>> {
      Grammar grammar;
      const auto built = TRY(add_json_schema(grammar, one.schema));
      return compile_grammar(grammar, built.expression);
    });
    if (!compiled.ok()) return;
    ++compiled_count;
    for (const std::string& text : one.texts) {
      follow(compiled.value(), text, {accept_first, accept, mask});
    }
    walk(Matcher(compiled.value(), trie));
  }

  // Fed tokens as a model would write them, up to the first that does not fit: twice to one new
  // automaton, and once to one that makes all masks.
  struct Followed {
    Times& accept_first;
    Times& accept;
    Times& mask;
  };
  void follow(const std::shared_ptr<const CompiledGrammar>& grammar, const std::string& text,
              const Followed& times) {
    const std::vector<int32_t> tokens = tokenizer->encode(text, {.parse_special = true});
    Matcher first(grammar, trie);
    accept_all(first, tokens, times.accept_first);
    Matcher again = first.restarted();
    accept_all(again, tokens, times.accept);
    Matcher masked(grammar, trie);
    std::string done;
    std::vector<uint64_t> words(trie->mask_words());
    for (const int32_t token : tokens) {
      if (!times.mask.measure([&] { return masked.mask(words); }).ok()) return;
      if (times.mask.last() > slow_us) {
        fmt::print("{:.0f} us: after {} of {}\n", times.mask.last(), done, text.substr(0, 80));
      }
      done += trie->bytes_of(token);
      if (!masked.accept_token(token)) return;
    }
  }

  // The recorded outputs of a family, with and without a required call.
  void follow_answers(const ToolFormat& format, const Json& tools, const Json& recorded) {
    for (const CallChoice choice : {CallChoice::kAuto, CallChoice::kRequired}) {
      AnswerOptions options;
      options.format = &format;
      options.tools = &tools;
      options.calls = choice;
      const auto spec = answer_constraint(options);
      const auto grammar =
          call_compile.measure([&] { return compile_constraint(spec.value(), *tokenizer); });
      for (const Json& one : recorded.get_array()) {
        const std::string raw(find(one, "raw")->get_string());
        follow(grammar.value(), raw, {call_accept_first, call_accept, call_mask});
      }
    }
  }

  void accept_all(Matcher& matcher, const std::vector<int32_t>& tokens, Times& times) {
    for (const int32_t token : tokens) {
      if (!times.measure([&] { return matcher.accept_token(token); })) return;
    }
  }

  void walk(Matcher matcher) {
    constexpr int kSteps = 60;
    std::mt19937 random(1);
    std::vector<uint64_t> words(trie->mask_words());
    for (int step = 0; step < kSteps && !matcher.has_ended(); ++step) {
      if (!kept.measure([&] { return matcher.mask(words); }).ok()) return;
      std::vector<int32_t> allowed;
      for (size_t i = 0; i < words.size(); ++i) {
        for (uint64_t word = words[i]; word != 0; word &= word - 1) {
          allowed.push_back(static_cast<int32_t>(i * 64) + __builtin_ctzll(word));
        }
      }
      if (allowed.empty()) return;
      matcher.accept_token(allowed[random() % allowed.size()]);
    }
  }
};

int run(const std::string& tokenizer_path, const std::vector<std::string>& files,
        const std::string& calls, double slow_us, bool json) {
  auto tokenizer = tokenizer_path.empty()
                       ? Tokenizer::parse(qwen_tokenizer_json("tests/data/tokenizer/qwen2").value())
                       : Tokenizer::load(tokenizer_path);
  if (!tokenizer.ok()) {
    fmt::print(stderr, "{}\n", tokenizer.error().message);
    return 1;
  }
  Bench bench;
  bench.tokenizer = tokenizer.value();
  bench.slow_us = slow_us;
  Times build{"build the vocabulary"};
  const int32_t end = 0;
  const auto trie =
      build.measure([&] { return VocabularyTrie::build(*tokenizer.value(), std::span(&end, 1)); });
  bench.trie = trie.value();
  std::vector<Case> cases;
  for (const std::string& file : files) add_cases(file, cases);
  for (const Case& one : cases) bench.run(one);
  const auto tools = read_json_file(calls + "/tools.json");
  for (const ToolFormat& format : tool_formats()) {
    const auto recorded = read_json_file(fmt::format("{}/{}.json", calls, format.name));
    if (tools.ok() && recorded.ok()) bench.follow_answers(format, tools.value(), recorded.value());
  }
  fmt::print("{} tokens, {} schemas of which {} can be enforced\n", bench.trie->token_count(),
             cases.size(), bench.compiled_count);
  fmt::print("{:28} {:>9} {:>10} {:>10} {:>10} {:>10}\n", "us", "count", "p50", "p90", "p99",
             "worst");
  JsonArray rows;
  for (Times* times :
       {&build, &bench.compile, &bench.accept_first, &bench.accept, &bench.mask, &bench.kept,
        &bench.call_compile, &bench.call_accept_first, &bench.call_accept, &bench.call_mask}) {
    times->print();
    rows.push_back(times->json());
  }
  if (json) fmt::print("{}\n", dump_json(JsonObject{{"grammar", std::move(rows)}}));
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  CLI::App app{"what constrained decoding costs"};
  std::string tokenizer;
  std::vector<std::string> files{"tests/data/json_schema/tool_schemas.json",
                                 "tests/data/json_schema/test_suite.json"};
  std::string calls = "tests/data/tool_calls";
  double slow_us = 1e9;
  bool json = false;
  app.add_option("--tokenizer", tokenizer,
                 "a model folder or a tokenizer's file (default: Qwen2's, of the tests)");
  app.add_option("--schemas", files, "arrays of {\"schema\", \"valid\" or \"tests\"}");
  app.add_option("--calls", calls,
                 "a folder with tools.json and a file of outputs for each family");
  app.add_flag("--json", json, "a line of JSON after the table");
  app.add_option("--slow", slow_us, "print masks that take longer, in us");
  CLI11_PARSE(app, count, arguments);
  return lockstep::run(tokenizer, files, calls, slow_us, json);
}
