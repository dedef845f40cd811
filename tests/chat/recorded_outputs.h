// The recorded outputs of tests/data/tool_calls, and the result of feeding one to a parser.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "chat/calls/output_parser.h"
#include "json/json_file.h"

namespace lockstep {

inline constexpr std::string_view kRecordedFormats[] = {
    "llama3",       "hermes",     "qwen3_coder", "deepseek_v3", "deepseek_v31",
    "deepseek_v32", "kimi_k2",    "mistral_v3",  "mistral_v11", "glm45",
    "gpt_oss",      "minimax_m2", "gemma4"};

inline Json recorded_file(std::string_view name) {
  auto json =
      read_json_file(fmt::format("{}/tests/data/tool_calls/{}.json", LOCKSTEP_SOURCE_DIR, name));
  REQUIRE_MESSAGE(json.ok(), name);
  return json.value();
}

inline std::shared_ptr<const ToolSet> recorded_tools() {
  static const auto tools = std::make_shared<const ToolSet>(recorded_file("tools"));
  return tools;
}

inline std::string text_of(const Json& json) {
  return json.is_string() ? std::string(json.get_string()) : std::string();
}

// A parser's result for one output.
struct Parsed {
  OutputMessage message;
  std::string finish_reason;
  std::vector<std::vector<OutputDelta>> deltas;  // of each chunk, and of the end
};

inline Parsed parse_chunks(OutputParser::Options options, const std::vector<std::string>& chunks,
                           bool is_truncated) {
  OutputParser parser(std::move(options));
  Parsed parsed;
  for (const std::string& chunk : chunks) parsed.deltas.push_back(parser.push(chunk));
  parsed.deltas.push_back(parser.finish(is_truncated));
  MessageBuilder message;
  for (const auto& some : parsed.deltas) {
    for (const OutputDelta& delta : some) message.add(delta);
  }
  parsed.message = message.message();
  parsed.finish_reason = parser.finish_reason();
  return parsed;
}

inline std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const size_t bytes = first_utf8_character(text).bytes;
    characters.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return characters;
}

inline std::vector<std::string> bytes_of(std::string_view text) {
  std::vector<std::string> bytes;
  for (const char byte : text) bytes.emplace_back(1, byte);
  return bytes;
}

// Parses all of `raw` at once.
inline Parsed parse_whole(std::string_view format, std::string_view raw, bool is_truncated = false,
                          bool reasoning_is_open = false) {
  OutputParser::Options options;
  options.format = find_tool_format(format);
  REQUIRE(options.format != nullptr);
  options.tools = recorded_tools();
  options.reasoning_is_open = reasoning_is_open;
  return parse_chunks(options, {std::string(raw)}, is_truncated);
}

// The message in one line, to compare and to read.
inline std::string told(const OutputMessage& message) {
  std::string text = "[" + message.content + "][" + message.reasoning + "]";
  for (const OutputCall& call : message.calls) text += " " + call.name + call.arguments;
  return text;
}

}  // namespace lockstep
