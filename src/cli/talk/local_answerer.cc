#include "cli/talk/local_answerer.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "chat/calls/output_parser.h"
#include "cli/client/generate.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "server/chat/chat_choice.h"
#include "server/chat/chat_prompt.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

constexpr double kTemperatureDefault = 0.8;  // if neither the user nor the model sets one

// Options that own workers take; /set and the flags know more for nodes.
Result<GenerateRequest> local_request(const JsonObject& options, std::vector<int32_t> prompt,
                                      const ModelService& model) {
  const SamplingDefaults defaults = model.sampling_defaults();
  const Json json = options;
  for (const auto& [name, value] : options) {
    const bool is_known = name == "temperature" || name == "top_k" || name == "top_p" ||
                          name == "seed" || name == "max_tokens";
    if (!is_known) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("the option {} needs a node; start one with `lockstep serve`",
                               std::string_view(name))};
    }
  }
  const int room = model.status().context - static_cast<int>(prompt.size()) + 1;
  const float temperature = defaults.temperature.value_or(static_cast<float>(kTemperatureDefault));
  SamplingOptions sampling;
  sampling.temperature =
      static_cast<float>(TRY(get_double(json, "temperature")).value_or(temperature));
  sampling.top_k =
      static_cast<int>(TRY(get_int(json, "top_k")).value_or(defaults.top_k.value_or(0)));
  sampling.top_p =
      static_cast<float>(TRY(get_double(json, "top_p")).value_or(defaults.top_p.value_or(1.0f)));
  const auto seed = TRY(get_int(json, "seed"));
  sampling.seed = seed ? static_cast<uint64_t>(*seed) : std::random_device{}();
  const auto most = TRY(get_int(json, "max_tokens"));
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = most ? static_cast<int>(*most) : std::max(room, 1);
  request.stop_ids = model.stop_ids();
  request.sampling = sampling;
  return request;
}

// Whether the model's chat template is used. An unreadable template is an error: plain text would
// be a different question.
Result<bool> uses_template(bool is_raw, const ModelService& model) {
  if (is_raw) return false;
  const ModelChatFormat format = model.chat_format();
  if (format.ok()) return format.value() != nullptr;
  return Error{format.error().code,
               fmt::format("the chat template cannot be used: {}; --raw works without it",
                           format.error().message)};
}

Result<ChatPrompt> local_prompt(bool is_chat, const ModelService& model,
                                const Dialogue& conversation, const TalkSettings& settings) {
  if (!is_chat) {
    return ChatPrompt{encode_prompt(*model.tokenizer(), conversation.plain_text())};
  }
  const Json messages = conversation.request_messages();
  JsonObject variables;
  if (settings.thinking == "on" || settings.thinking == "off") {
    variables["enable_thinking"] = variables["thinking"] = settings.thinking == "on";
  } else if (!settings.thinking.empty()) {
    variables["reasoning_effort"] = settings.thinking;
  }
  ChatInput input;
  input.messages = &messages;
  input.variables = &variables;
  input.now = local_time_now();
  return chat_prompt(model, input);
}

// Takes an answer's tokens: parses the output in the format of the model's family.
class LocalParser {
 public:
  LocalParser(const ModelService& model, bool is_chat, bool reasoning_is_open, TalkEvents& events)
      : parser_(options(model, is_chat, reasoning_is_open)),
        decoder_(model.tokenizer(), is_chat, printed_tokens(model, is_chat)),
        events_(events) {}

  void push(int32_t token) { take(parser_.push(decoder_.push(token))); }
  OutputMessage finish(bool is_truncated) {
    take(parser_.push(decoder_.finish()));
    take(parser_.finish(is_truncated));
    return message_.message();
  }

 private:
  static const ToolFormat* format_of(const ModelService& model, bool is_chat) {
    const ModelChatFormat format = model.chat_format();
    return is_chat && format.ok() && format.value() ? format.value()->tool_format(false) : nullptr;
  }
  static OutputParser::Options options(const ModelService& model, bool is_chat, bool is_open) {
    OutputParser::Options options;
    options.format = format_of(model, is_chat);
    options.reasoning_is_open = is_open;
    return options;
  }
  static std::map<int32_t, std::string> printed_tokens(const ModelService& model, bool is_chat) {
    const ToolFormat* format = format_of(model, is_chat);
    if (format == nullptr) return {};
    return marker_tokens(*format, *model.tokenizer());
  }
  void take(const std::vector<OutputDelta>& deltas) {
    for (const OutputDelta& delta : deltas) {
      message_.add(delta);
      if (delta.text.empty()) continue;
      if (delta.kind == OutputDelta::Kind::kReasoning) {
        events_.on_reasoning(delta.text);
      } else {
        events_.on_content(delta.text);
      }
    }
  }

  OutputParser parser_;
  StreamDecoder decoder_;
  MessageBuilder message_;
  TalkEvents& events_;
};

void add_generated(const Generated& generated, TalkAnswer& answer) {
  answer.tokens = generated.tokens;
  answer.finish_reason = generated.reason == FinishReason::kStop ? "stop" : "length";
  TalkFigures& figures = answer.figures;
  figures.new_tokens = static_cast<int64_t>(generated.tokens.size());
  if (generated.tokens.empty()) return;
  figures.first_s = seconds_between(generated.started, generated.first_token);
  figures.whole_s = seconds_between(generated.started, generated.last_token);
  const double after_s = figures.whole_s - figures.first_s;
  if (after_s > 0 && figures.new_tokens > 1) {
    figures.tokens_s = static_cast<double>(figures.new_tokens - 1) / after_s;
  }
}

}  // namespace

Status LocalAnswerer::check(const TalkSettings& settings) {
  if (!settings.schema) return Ok{};
  return Error{ErrorCode::kUnsupported, "a schema needs a node; start one with `lockstep serve`"};
}

Result<TalkAnswer> LocalAnswerer::answer(const Dialogue& conversation, const TalkSettings& settings,
                                         TalkEvents& events) {
  TRY(check(settings));
  const bool is_chat = TRY(uses_template(settings.is_raw, service_));
  ChatPrompt prompt = TRY(local_prompt(is_chat, service_, conversation, settings));
  TalkAnswer answer;
  answer.figures.prompt_tokens = static_cast<int64_t>(prompt.ids.size());
  TRY(check_context(prompt.ids.size(), service_.status()));
  GenerateRequest request = TRY(local_request(settings.options, std::move(prompt.ids), service_));
  request.draft_tokens = draft_tokens_;
  LocalParser parser(service_, is_chat, prompt.reasoning_is_open, events);
  const auto generated =
      generate_and_wait(service_, std::move(request), [&](int32_t token) { parser.push(token); });
  if (!generated.ok() && generated.error().code != ErrorCode::kCancelled) {
    return generated.error();
  }
  if (generated.ok()) {
    add_generated(generated.value(), answer);
  } else {
    answer.error = generated.error();
  }
  const bool is_truncated = answer.error.has_value() || answer.finish_reason == "length";
  OutputMessage message = parser.finish(is_truncated);
  answer.content = std::move(message.content);
  answer.reasoning = std::move(message.reasoning);
  for (const RankStatus& rank : service_.status().ranks) answer.pids.push_back(rank.pid);
  return answer;
}

Status LocalAnswerer::choose_model(const std::string& model) {
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("own workers have one model; `lockstep run --local {}` starts others", model)};
}

Result<std::vector<std::string>> LocalAnswerer::node_lines() {
  std::vector<std::string> lines{place()};
  for (const RankStatus& rank : service_.status().ranks) {
    lines.push_back(fmt::format("  rank {}, process {}, {}", rank.rank, rank.pid,
                                bytes_text(rank.weight_bytes)));
  }
  return lines;
}

std::string LocalAnswerer::place() const {
  return fmt::format("on {} of this process", counted(service_.status().ranks.size(), "rank"));
}

}  // namespace lockstep
