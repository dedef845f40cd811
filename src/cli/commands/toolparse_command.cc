// `lockstep toolparse`: converts a model's raw output to the message that clients get, with every
// delta on the way.
#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "chat/calls/output_parser.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "json/json_file.h"

namespace lockstep {
namespace {

constexpr size_t kOutputsBytesMax = size_t{256} << 20;

struct ToolparseFlags {
  std::string format;
  std::string tools;
  std::string split;
  bool open_think = false;
  bool truncated = false;
  bool batch = false;
  bool json = false;
};

struct Family {
  const ToolFormat* format;
  std::shared_ptr<const ToolSet> tools;
};

// Chunks of `count` characters; the last may be shorter.
std::vector<std::string> cut(std::string_view raw, int64_t count) {
  std::vector<std::string> chunks;
  for (int64_t characters = 0; !raw.empty(); ++characters) {
    if (characters % count == 0) chunks.emplace_back();
    const size_t bytes = first_utf8_character(raw).bytes;
    chunks.back() += raw.substr(0, bytes);
    raw.remove_prefix(bytes);
  }
  return chunks;
}

// "split": null, a number of characters, or the chunks themselves.
Result<std::vector<std::string>> chunks_of(const std::string& raw, const Json* split) {
  const Error bad{ErrorCode::kInvalidArgument,
                  "\"split\" must be null, a number of characters from 1, or a list of texts that "
                  "make \"raw\""};
  if (split == nullptr || split->is_null()) return std::vector<std::string>{raw};
  if (split->is_int64() && split->get_int64() > 0) return cut(raw, split->get_int64());
  if (!split->is_array()) return bad;
  std::vector<std::string> chunks;
  std::string all;
  for (const Json& chunk : split->get_array()) {
    if (!chunk.is_string()) return bad;
    chunks.emplace_back(chunk.get_string());
    all += chunks.back();
  }
  if (all != raw) return bad;
  return chunks;
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

JsonObject message_json(const OutputMessage& message) {
  JsonArray calls;
  for (const OutputCall& call : message.calls) {
    calls.emplace_back(
        JsonObject{{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
  return {{"content", text_or_null(message.content)},
          {"reasoning_content", text_or_null(message.reasoning)},
          {"tool_calls", std::move(calls)}};
}

Result<Json> answer_parse_case(const Family& family, const Json& value) {
  const auto raw = TRY(get_string(value, "raw"));
  if (!raw) return Error{ErrorCode::kInvalidArgument, "the case has no \"raw\""};
  const auto chunks = TRY(chunks_of(*raw, find(value, "split")));
  const bool is_truncated = TRY(get_bool(value, "truncated")).value_or(false);
  OutputParser::Options options;
  options.format = family.format;
  options.tools = family.tools;
  options.reasoning_is_open = TRY(get_bool(value, "open_think")).value_or(false);
  OutputParser parser(options);
  MessageBuilder message;
  JsonArray deltas;
  const auto add = [&](const std::vector<OutputDelta>& some) {
    JsonArray list;
    for (const OutputDelta& delta : some) {
      message.add(delta);
      list.emplace_back(delta_json(delta));
    }
    deltas.emplace_back(std::move(list));
  };
  for (const std::string& chunk : chunks) add(parser.push(chunk));
  add(parser.finish(is_truncated));
  JsonObject answer = message_json(message.message());
  answer["finish_reason"] = parser.finish_reason();
  answer["deltas"] = std::move(deltas);
  return Json(std::move(answer));
}

Json answer_line(const Family& family, const std::string& line) {
  const auto value = parse_json(line);
  const auto answer =
      value.ok() ? answer_parse_case(family, value.value()) : Result<Json>(value.error());
  return answer.ok() ? answer.value() : Json(JsonObject{{"error", answer.error().message}});
}

Result<Family> find_family(const ToolparseFlags& flags) {
  const ToolFormat* format = find_tool_format(flags.format);
  if (format == nullptr) {
    std::string names;
    for (const ToolFormat& known : tool_formats()) {
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    }
    return Error{ErrorCode::kInvalidArgument, "--format can be " + names};
  }
  const Json tools = TRY(read_json_file(flags.tools));
  if (!tools.is_array()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} must hold a list of tools as in a chat request", flags.tools)};
  }
  return Family{format, std::make_shared<const ToolSet>(tools)};
}

// The flags and stdin as a batch case.
Result<Json> parse_one(const Family& family, const ToolparseFlags& flags) {
  const std::string raw = TRY(read_stdin(kOutputsBytesMax));
  JsonObject value{{"raw", raw}, {"open_think", flags.open_think}, {"truncated", flags.truncated}};
  if (!flags.split.empty()) {
    auto split = parse_json(flags.split);
    value["split"] = split.ok() ? std::move(split.value()) : Json(flags.split);
  }
  return answer_parse_case(family, value);
}

int run_toolparse_command(const ToolparseFlags& flags) {
  const auto family = find_family(flags);
  if (!family.ok()) return fail(family.error());
  if (!flags.batch) {
    const auto answer = parse_one(family.value(), flags);
    if (!answer.ok()) return fail(answer.error());
    print_json(answer.value());
    return 0;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    if (!line.empty()) print_json(answer_line(family.value(), line));
  }
  return 0;
}

}  // namespace

void add_toolparse_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<ToolparseFlags>();
  CLI::App* command = app.add_subcommand(
      "toolparse", "turn a model's raw output into a message with tool calls, as JSON");
  command->add_option("--format", flags->format, "the model family's format: hermes, llama3...")
      ->required();
  command->add_option("--tools", flags->tools, "a JSON file with the tools that the model has")
      ->required();
  command->add_option("--split", flags->split,
                      "feed this many characters at a time, or the texts of this JSON list");
  command->add_flag("--open-think", flags->open_think, "the prompt ended inside the reasoning");
  command->add_flag("--truncated", flags->truncated, "the output was cut off by max_tokens");
  command->add_flag("--batch", flags->batch, "stdin holds a JSON case on each line");
  command->add_flag("--json", flags->json, "one JSON value (always)");
  command->callback(
      [flags, &chosen] { chosen = [flags] { return run_toolparse_command(*flags); }; });
}

}  // namespace lockstep
