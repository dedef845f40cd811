// Outputs that break their family's rules, and what becomes of each:
// tests/data/tool_calls/README.md has the form of the file. The result is the same wherever the
// output is cut.
#include <map>
#include <random>

#include "chat/recorded_outputs.h"

namespace lockstep {
namespace {

constexpr int kCasesOfFamily = 10;  // at least
constexpr int kRandomCutCount = 20;

struct MalformedOutput {
  std::string family;
  std::string output;
  std::string decision;
  std::string expected;  // as told()
  size_t call_count = 0;
};

std::vector<MalformedOutput> malformed_outputs() {
  std::vector<MalformedOutput> outputs;
  const Json file = recorded_file("malformed");
  for (const Json& one : file.as_array()) {
    OutputMessage message;
    message.content = text_of(one.at("content"));
    message.reasoning = text_of(one.at("reasoning"));
    for (const Json& call : one.at("calls").as_array()) {
      message.calls.push_back({"", text_of(call.at("name")), text_of(call.at("arguments"))});
    }
    CHECK(!text_of(one.at("note")).empty());
    outputs.push_back({text_of(one.at("family")), text_of(one.at("output")),
                       text_of(one.at("decision")), told(message), message.calls.size()});
  }
  return outputs;
}

void check_cut(const MalformedOutput& one, const std::vector<std::string>& pieces) {
  OutputParser::Options options;
  options.format = find_tool_format(one.family);
  REQUIRE(options.format != nullptr);
  options.tools = recorded_tools();
  const Parsed parsed = parse_chunks(options, pieces, false);
  CAPTURE(one.family);
  CAPTURE(one.output);
  CAPTURE(pieces.front());
  CHECK(told(parsed.message) == one.expected);
  CHECK(parsed.finish_reason == (one.call_count > 0 ? "tool_calls" : "stop"));
}

}  // namespace

TEST_CASE("a malformed output becomes what was decided, wherever it is cut") {
  std::mt19937 random(11);
  for (const MalformedOutput& one : malformed_outputs()) {
    const std::string& text = one.output;
    check_cut(one, {text});
    check_cut(one, bytes_of(text));
    for (size_t at = 1; at < text.size(); ++at) {
      check_cut(one, {text.substr(0, at), text.substr(at)});
    }
    for (int i = 0; i < kRandomCutCount; ++i) {
      std::vector<std::string> pieces;
      for (size_t at = 0; at < text.size(); at += pieces.back().size()) {
        pieces.push_back(text.substr(at, 1 + random() % 17));
      }
      check_cut(one, pieces);
    }
  }
}

TEST_CASE("each family has malformed outputs of its own") {
  std::map<std::string, int> counts;
  for (const MalformedOutput& one : malformed_outputs()) {
    ++counts[one.family];
    CAPTURE(one.output);
    const bool is_known = one.decision == "call" || one.decision == "corrected";
    CHECK((is_known || one.decision == "text"));
    CHECK((one.decision != "text" || one.call_count == 0));
    CHECK((one.decision != "call" || one.call_count > 0));
  }
  for (const ToolFormat& format : tool_formats()) {
    CAPTURE(format.name);
    CHECK(counts[std::string(format.name)] >= kCasesOfFamily);
  }
}

TEST_CASE("a malformed output that is cut off is no error") {
  for (const MalformedOutput& one : malformed_outputs()) {
    for (size_t size = 0; size <= one.output.size(); ++size) {
      const std::string begin = one.output.substr(0, size);
      const Parsed parsed = parse_whole(one.family, begin, true);
      CHECK(parsed.finish_reason == "length");
      OutputParser::Options options;
      options.format = find_tool_format(one.family);
      options.tools = recorded_tools();
      CAPTURE(one.family);
      CAPTURE(begin);
      CHECK(told(parse_chunks(options, bytes_of(begin), true).message) == told(parsed.message));
    }
  }
}

}  // namespace lockstep
