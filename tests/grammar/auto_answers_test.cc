// Under the constraint of `auto` everything a model writes, however randomly it is sampled, reaches
// the client: text as content, thoughts as reasoning, calls as calls with arguments that parse.
#include <fmt/core.h>

#include <random>

#include "chat/constraints/answer_constraint.h"
#include "chat/recorded_outputs.h"
#include "grammar/constraint.h"
#include "grammar/grammar_checks.h"

namespace lockstep {
namespace {

constexpr int kTokensMax = 250;
constexpr int kAnswersOfEach = 20;

struct StoriesVocabulary {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const VocabularyTrie> trie;
};

const StoriesVocabulary& stories() {
  static const StoriesVocabulary made = [] {
    const auto tokenizer = Tokenizer::load(LOCKSTEP_SOURCE_DIR "/models/stories260K");
    REQUIRE(tokenizer.ok());
    const int32_t end = 2;
    return StoriesVocabulary{tokenizer.value(),
                             VocabularyTrie::build(*tokenizer.value(), std::span(&end, 1)).value()};
  }();
  return made;
}

struct Written {
  std::string text;
  bool has_ended = false;
};

// The beginning of a call without a marker, in formats that have such calls; or empty.
std::string unmarked_call(const ToolFormat& format) {
  return format.prefix_begins_call ? std::string(format.name_prefix) + "now{" : std::string();
}

// Uniform among the allowed tokens. Chance alone would never write a marker, so now and then one is
// begun.
Written random_answer(Matcher matcher, const ToolFormat& format, std::mt19937& random) {
  std::vector<std::string> begins{std::string(format.reasoning_begin),
                                  std::string(format.reasoning_end), unmarked_call(format), "{"};
  for (const auto* markers : {&format.section_begin, &format.call_begin}) {
    begins.insert(begins.end(), markers->begin(), markers->end());
  }
  StreamDecoder decoder(stories().tokenizer, true);
  std::vector<uint64_t> words(stories().trie->mask_words());
  Written written;
  for (int step = 0; step < kTokensMax; ++step) {
    if (random() % 10 == 0) {
      const std::string& begin = begins[random() % begins.size()];
      if (!begin.empty() && matcher.accept_bytes(begin)) {
        for (const char byte : begin) {
          const int32_t token = 3 + static_cast<uint8_t>(byte);  // <0x00> is 3
          written.text += decoder.push(token);
        }
        continue;
      }
    }
    REQUIRE(matcher.mask(words).ok());
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token < stories().trie->token_count(); ++token) {
      if (has_bit(words, token)) allowed.push_back(token);
    }
    REQUIRE(!allowed.empty());
    const int32_t token = allowed[random() % allowed.size()];
    REQUIRE(matcher.accept_token(token));
    written.has_ended = matcher.has_ended();
    if (written.has_ended) break;
    written.text += decoder.push(token);
  }
  written.text += decoder.finish();
  return written;
}

std::string without_space(std::string_view text) {
  std::string kept;
  for (const char letter : text) {
    if (std::string_view(" \t\r\n").find(letter) == std::string_view::npos) kept += letter;
  }
  return kept;
}

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part)) {
    text.erase(at, part.size());
  }
}

// The position of a call's first marker.
size_t first_call(const ToolFormat& format, std::string_view text) {
  size_t at = text.size();
  for (const auto* markers : {&format.section_begin, &format.call_begin}) {
    for (const std::string_view marker : *markers) at = std::min(at, text.find(marker));
  }
  return at;
}

}  // namespace

TEST_CASE("with auto nothing that a model writes is lost or causes an error") {
  const Json tools = recorded_file("tools");
  const auto set = std::make_shared<const ToolSet>(tools);
  std::mt19937 random(11);
  int texts = 0;
  int calls = 0;
  for (const ToolFormat& format : tool_formats()) {
    AnswerOptions options;
    options.format = &format;
    options.tools = &tools;
    const auto spec = answer_constraint(options);
    REQUIRE(spec.ok());
    const Compiled grammar = grammar_of(compile_constraint(spec.value(), *stories().tokenizer));
    const Matcher start(grammar, stories().trie);
    for (int i = 0; i < kAnswersOfEach; ++i) {
      const Written written = random_answer(start.restarted(), format, random);
      CAPTURE(format.name);
      CAPTURE(written.text);
      OutputParser::Options reading;
      reading.format = &format;
      reading.tools = set;
      const Parsed parsed = parse_chunks(reading, {written.text}, !written.has_ended);
      for (const OutputCall& call : parsed.message.calls) {
        ++calls;
        CHECK(set->has(call.name));
        if (!written.has_ended) continue;
        const auto arguments = parse_json(call.arguments);
        CHECK((arguments.ok() && arguments.value().is_object()));
      }
      if (format.is_harmony) continue;  // headers and text alternate
      // The text before the first call marker, or all of it, must be complete.
      std::string expected =
          without_space(written.text.substr(0, first_call(format, written.text)));
      const bool is_bare =
          !expected.empty() && format.bare_begin.find(expected.front()) != std::string_view::npos;
      const std::string unmarked = unmarked_call(format);
      const bool is_unmarked = !unmarked.empty() && expected.find(unmarked) != std::string::npos;
      if (is_bare || is_unmarked) continue;
      std::string said = without_space(parsed.message.reasoning + parsed.message.content);
      for (const std::string_view marker : {format.reasoning_begin, format.reasoning_end}) {
        if (!marker.empty()) erase_all(said, marker);
        if (!marker.empty()) erase_all(expected, marker);
      }
      CHECK(said.substr(0, expected.size()) == expected);
      ++texts;
    }
  }
  MESSAGE(texts, " answers whose text was compared, ", calls, " calls");
  CHECK(texts > 100);
  CHECK(calls > 20);
}

}  // namespace lockstep
