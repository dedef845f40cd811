// Writes random answers that the constraint of a tool call allows, as the parser reads them, for
// tests/grammar/validate_calls.py and for tests/clients/judge_calls.mjs: tokens are drawn uniformly
// among those allowed. Each line of stdin is {"schema", "bounded"}: the parameters of a tool, and
// the same with bounds on strings and lists. Each line of stdout is the result of one answer in one
// family's format:
//   {"family", "vocabulary", "choice", "line", "ended", "schema", "text", "calls": [{"name",
//    "arguments"}], "finish_reason"}
// or, where no grammar can be made, {"family", "line", "refused"}.
//   call_walks STORIES260K ANSWERS_OF_EACH SEED
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "chat/calls/output_parser.h"
#include "chat/constraints/answer_constraint.h"
#include "grammar/automaton/matcher.h"
#include "grammar/constraint.h"
#include "json/json.h"

namespace lockstep {
namespace {

constexpr int kTokensMax = 3000;
constexpr int kWordsCount = 300;

struct Vocabulary {
  std::string name;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const VocabularyTrie> trie;
  std::map<int32_t, std::string> printed;
};

// A format's markers that real tokenizers have as one token.
std::set<std::string> special_markers(const ToolFormat& format) {
  std::set<std::string> special{"<eos>"};
  for (const std::string_view marker : format.markers()) {
    const bool has_part = std::any_of(
        format.marker_parts.begin(), format.marker_parts.end(), [&](std::string_view one) {
          return marker != one && marker.find(one) != std::string_view::npos;
        });
    const bool is_tag = marker.size() > 2 && (marker.front() == '<' || marker.front() == '[') &&
                        (marker.back() == '>' || marker.back() == ']');
    const bool is_part = std::find(format.marker_parts.begin(), format.marker_parts.end(),
                                   marker) != format.marker_parts.end();
    if (is_part || (is_tag && !has_part)) special.emplace(marker);
  }
  return special;
}

// All bytes, some words and pieces of JSON, and the markers as special tokens.
Vocabulary marker_vocabulary(const ToolFormat& format) {
  std::mt19937 random(7);
  JsonObject tokens;
  for (int byte = 0; byte < 256; ++byte) tokens[fmt::format("<0x{:02X}>", byte)] = tokens.size();
  for (const char* piece : {"{\"", "\":", "\": ", "\": \"", "\", \"", "\"}", "}}", "}\n", "\n\n",
                            "},", "name", "arguments", "parameters", "</", "<tool", "ä", "日本"}) {
    tokens[piece] = tokens.size();
  }
  while (tokens.size() < kWordsCount + 256) {
    std::string word;
    for (uint32_t left = 2 + random() % 4; left > 0; --left)
      word += "etaoinshrdlu0123"[random() % 16];
    if (!tokens.contains(word)) tokens[word] = tokens.size();
  }
  Vocabulary made{.name = "markers", .tokenizer = nullptr, .trie = nullptr, .printed = {}};
  JsonArray added;
  auto id = static_cast<int32_t>(tokens.size());
  for (const std::string& marker : special_markers(format)) {
    if (marker != "<eos>") made.printed[id] = marker;
    added.push_back(JsonObject{{"id", id++},
                               {"content", marker},
                               {"special", true},
                               {"single_word", false},
                               {"lstrip", false},
                               {"rstrip", false},
                               {"normalized", false}});
  }
  const JsonObject file{
      {"added_tokens", added},
      {"decoder", JsonObject{{"type", "ByteFallback"}}},
      {"model",
       JsonObject{
           {"type", "BPE"}, {"byte_fallback", true}, {"vocab", tokens}, {"merges", JsonArray()}}}};
  auto tokenizer = Tokenizer::parse(dump_json(file));
  if (!tokenizer.ok()) std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
  LOCKSTEP_CHECK(tokenizer.ok());
  made.tokenizer = tokenizer.value();
  const int32_t end = made.tokenizer->encode("<eos>", {.parse_special = true}).front();
  made.trie = VocabularyTrie::build(*made.tokenizer, std::span(&end, 1)).value();
  return made;
}

Vocabulary letter_vocabulary(const std::shared_ptr<const Tokenizer>& stories) {
  const int32_t end = 2;
  return {"letters", stories, VocabularyTrie::build(*stories, std::span(&end, 1)).value(), {}};
}

struct Answer {
  std::string text;
  bool has_ended = false;
};

Answer random_answer(Matcher matcher, const Vocabulary& vocabulary, std::mt19937& random) {
  StreamDecoder decoder(vocabulary.tokenizer, true, vocabulary.printed);
  std::vector<uint64_t> words(vocabulary.trie->mask_words());
  Answer answer;
  for (int step = 0; step < kTokensMax; ++step) {
    LOCKSTEP_CHECK(matcher.mask(words).ok());
    std::vector<int32_t> allowed;
    for (size_t i = 0; i < words.size(); ++i) {
      for (uint64_t word = words[i]; word != 0; word &= word - 1) {
        allowed.push_back(static_cast<int32_t>(i * 64) + __builtin_ctzll(word));
      }
    }
    LOCKSTEP_CHECK(!allowed.empty());  // a dead end
    const int32_t token = allowed[random() % allowed.size()];
    LOCKSTEP_CHECK(matcher.accept_token(token));
    answer.has_ended = matcher.has_ended();
    if (answer.has_ended) break;
    answer.text += decoder.push(token);
  }
  answer.text += decoder.finish();
  return answer;
}

JsonArray tools_with(const Json& schema) {
  const auto tool = [](const char* name, Json parameters) {
    return JsonObject{
        {"type", "function"},
        {"function",
         JsonObject{{"name", name}, {"strict", true}, {"parameters", std::move(parameters)}}}};
  };
  return {tool("the_tool", schema),
          tool("the_other-tool2", JsonObject{{"type", "object"}, {"properties", JsonObject()}})};
}

struct Walk {
  const ToolFormat& format;
  const Vocabulary& vocabulary;
  bool is_named;
  size_t line;
  const Json& schema;
};

JsonObject answer_of(const Walk& walk, const Answer& written, const AnswerOptions& options) {
  OutputParser::Options parsing;
  parsing.format = &walk.format;
  parsing.tools = std::make_shared<const ToolSet>(Json(tools_with(walk.schema)));
  parsing.reasoning_is_open = options.reasoning == ReasoningState::kOpen;
  OutputParser parser(parsing);
  MessageBuilder message;
  for (const OutputDelta& delta : parser.push(written.text)) message.add(delta);
  for (const OutputDelta& delta : parser.finish(!written.has_ended)) message.add(delta);
  JsonArray calls;
  for (const OutputCall& call : message.message().calls) {
    calls.push_back(JsonObject{{"name", call.name}, {"arguments", call.arguments}});
  }
  return {{"family", walk.format.name},
          {"vocabulary", walk.vocabulary.name},
          {"choice", walk.is_named ? "named" : "required"},
          {"line", walk.line},
          {"ended", written.has_ended},
          {"schema", walk.schema},
          {"text", written.text},
          {"content", message.message().content},
          {"calls", std::move(calls)},
          {"finish_reason", parser.finish_reason()}};
}

void print(const Json& json) {
  std::cout << dump_json(json) << '\n';
}

// Empty, or why there is no grammar.
std::string walk_all(const Walk& walk, const Json& bounded, int count, std::mt19937& random) {
  Json tools = tools_with(bounded);
  if (walk.is_named) tools.get_array().pop_back();
  AnswerOptions options;
  options.format = &walk.format;
  options.tools = &tools;
  options.calls = CallChoice::kRequired;
  options.is_parallel = walk.line % 2 == 0;
  // Random letters would never write the marker that ends a thought.
  options.reasoning = ReasoningState::kClosed;
  if (walk.vocabulary.name == "markers") {
    options.reasoning = walk.line % 3 == 0 ? ReasoningState::kOpen : ReasoningState::kMayOpen;
  }
  const auto spec = answer_constraint(options);
  if (!spec.ok()) return spec.error().message;
  const auto grammar = compile_constraint(spec.value(), *walk.vocabulary.tokenizer);
  if (!grammar.ok()) return grammar.error().message;
  const Matcher start(grammar.value(), walk.vocabulary.trie);
  for (int i = 0; i < count; ++i) {
    print(answer_of(walk, random_answer(start.restarted(), walk.vocabulary, random), options));
  }
  return {};
}

void run(const std::shared_ptr<const Tokenizer>& stories, int count, std::mt19937& random) {
  std::vector<std::pair<Json, Json>> schemas;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto json = parse_json(line);
    LOCKSTEP_CHECK(json.ok());
    schemas.emplace_back(*find(json.value(), "schema"), *find(json.value(), "bounded"));
  }
  const Vocabulary letters = letter_vocabulary(stories);
  for (const ToolFormat& format : tool_formats()) {
    const Vocabulary markers = marker_vocabulary(format);
    for (size_t i = 0; i < schemas.size(); ++i) {
      const auto& [schema, bounded] = schemas[i];
      for (const Vocabulary* vocabulary : {&markers, &letters}) {
        for (const bool is_named : {false, true}) {
          const Walk walk{format, *vocabulary, is_named, i, schema};
          std::string refusal = walk_all(walk, bounded, count, random);
          if (!refusal.empty()) refusal = walk_all(walk, schema, count, random);
          if (refusal.empty()) continue;
          print(JsonObject{{"family", format.name}, {"line", i}, {"refused", refusal}});
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  const auto stories = lockstep::Tokenizer::load(count > 1 ? arguments[1] : "models/stories260K");
  if (!stories.ok()) {
    std::fprintf(stderr, "%s\n", stories.error().message.c_str());
    return 1;
  }
  std::mt19937 random(count > 3 ? static_cast<uint32_t>(std::atoi(arguments[3])) : 1);
  lockstep::run(stories.value(), count > 2 ? std::atoi(arguments[2]) : 1, random);
  return 0;
}
