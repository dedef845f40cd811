// `lockstep run`: answers one prompt, or chats in the terminal.
#include <editline/readline.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/output_parser.h"
#include "cli/client/generate.h"
#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "server/chat/chat_choice.h"
#include "server/chat/chat_prompt.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

constexpr size_t kPromptBytesMax = size_t{16} << 20;
constexpr float kTemperatureDefault = 0.8f;  // if neither the user nor the model sets one

struct RunFlags {
  GroupFlags group;
  std::string prompt;
  bool has_prompt = false;
  int max_tokens = 0;  // 0: as many as fit the context
  bool raw = false;
  std::optional<float> temperature;
  std::optional<int> top_k;
  std::optional<float> top_p;
  uint64_t seed = 0;
  bool has_seed = false;
  int draft_tokens = 0;
  bool json = false;
};

struct Answer {
  OutputMessage message;
  size_t prompt_tokens = 0;
  Generated generation;
  std::optional<Error> cancelled;  // by Ctrl-C; the message is the answer so far
};

GenerateRequest request_for(const RunFlags& flags, std::vector<int32_t> prompt,
                            const ModelService& model) {
  const int room = model.status().context - static_cast<int>(prompt.size()) + 1;
  const SamplingDefaults defaults = model.sampling_defaults();
  SamplingOptions sampling;
  sampling.temperature =
      flags.temperature.value_or(defaults.temperature.value_or(kTemperatureDefault));
  sampling.top_k = flags.top_k.value_or(defaults.top_k.value_or(0));
  sampling.top_p = flags.top_p.value_or(defaults.top_p.value_or(1.0f));
  sampling.seed = flags.has_seed ? flags.seed : std::random_device{}();
  return {.prompt = std::move(prompt),
          .max_tokens = flags.max_tokens > 0 ? flags.max_tokens : std::max(room, 1),
          .stop_ids = model.stop_ids(),
          .sampling = sampling,
          .draft_tokens = flags.draft_tokens};
}

// Whether the model's chat template is used. An unreadable template is an error: plain text would
// be a different question.
Result<bool> has_template(const RunFlags& flags, const ModelService& model) {
  if (flags.raw) return false;
  const ModelChatFormat format = model.chat_format();
  if (format.ok()) return format.value() != nullptr;
  return Error{format.error().code,
               fmt::format("the chat template cannot be used: {}; --raw works without it",
                           format.error().message)};
}

Result<ChatPrompt> prompt_of(bool is_chat, const ModelService& model, const Json& messages) {
  if (!is_chat) {
    return ChatPrompt{encode_prompt(*model.tokenizer(), plain_conversation(messages))};
  }
  ChatInput input;
  input.messages = &messages;
  input.now = local_time_now();
  return chat_prompt(model, input);
}

// Takes an answer's tokens: parses the output in the format of the model's family, and prints the
// answer on stdout and its reasoning on stderr, as they arrive.
class AnswerPrinter {
 public:
  AnswerPrinter(const ModelService& model, bool is_chat, bool reasoning_is_open, bool is_silent)
      : parser_(options(model, is_chat, reasoning_is_open)),
        decoder_(model.tokenizer(), is_chat, printed_tokens(model, is_chat)),
        is_silent_(is_silent) {}

  void push(int32_t token) { take(parser_.push(decoder_.push(token))); }
  OutputMessage finish(bool is_truncated) {
    take(parser_.push(decoder_.finish()));
    take(parser_.finish(is_truncated));
    set_dim(false);
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
      if (is_silent_) continue;
      const bool is_reasoning = delta.kind == OutputDelta::Kind::kReasoning;
      set_dim(is_reasoning);
      std::FILE* const file = is_reasoning ? stderr : stdout;
      fmt::print(file, "{}", delta.text);
      std::fflush(file);
    }
  }
  // A terminal shows reasoning dim; the answer then begins on a new line.
  void set_dim(bool is_dim) {
    if (is_silent_ || is_dim == is_dim_) return;
    is_dim_ = is_dim;
    const bool has_colours = isatty(STDERR_FILENO) != 0;
    fmt::print(stderr, "{}{}", has_colours ? (is_dim ? "\x1b[2m" : "\x1b[0m") : "",
               is_dim ? "" : "\n\n");
    std::fflush(stderr);
  }

  OutputParser parser_;
  StreamDecoder decoder_;
  MessageBuilder message_;
  const bool is_silent_;
  bool is_dim_ = false;
};

// Answers the last message; prints the pieces as they arrive unless the whole is wanted as JSON.
Result<Answer> answer_messages(const RunFlags& flags, ModelService& model, const Json& messages) {
  Answer answer;
  const bool is_chat = TRY(has_template(flags, model));
  ChatPrompt prompt = TRY(prompt_of(is_chat, model, messages));
  answer.prompt_tokens = prompt.ids.size();
  TRY(check_context(prompt.ids.size(), model.status()));
  AnswerPrinter printer(model, is_chat, prompt.reasoning_is_open, flags.json);
  auto generation = generate_and_wait(model, request_for(flags, std::move(prompt.ids), model),
                                      [&](int32_t token) { printer.push(token); });
  if (generation.ok()) {
    answer.generation = std::move(generation.value());
  } else if (generation.error().code == ErrorCode::kCancelled) {
    answer.cancelled = generation.error();
  } else {
    return generation.error();
  }
  const bool is_truncated = answer.cancelled || answer.generation.reason == FinishReason::kLength;
  answer.message = printer.finish(is_truncated);
  return answer;
}

Json chat_message(std::string_view role, std::string_view content) {
  return JsonObject{{"role", role}, {"content", content}};
}

Json answer_json(const Answer& answer, const ModelStatus& status) {
  const Generated& g = answer.generation;
  JsonObject object{{"text", answer.message.content},
                    {"tokens", JsonArray(g.tokens.begin(), g.tokens.end())},
                    {"prompt_tokens", answer.prompt_tokens},
                    {"completion_tokens", g.tokens.size()},
                    {"finish_reason", g.reason == FinishReason::kStop ? "stop" : "length"}};
  if (!answer.message.reasoning.empty()) object["reasoning"] = answer.message.reasoning;
  if (!g.tokens.empty()) {
    object["first_token_s"] = seconds_between(g.started, g.first_token);
    object["total_s"] = seconds_between(g.started, g.last_token);
  }
  JsonArray pids;
  for (const RankStatus& rank : status.ranks) pids.push_back(rank.pid);
  object["pids"] = std::move(pids);
  return object;
}

int answer_once(const RunFlags& flags, ModelService& model, const std::string& prompt) {
  auto answer = answer_messages(flags, model, JsonArray{chat_message("user", prompt)});
  if (!answer.ok()) return fail(answer.error());
  if (answer.value().cancelled) return fail(*answer.value().cancelled);
  if (flags.json) {
    print_json(answer_json(answer.value(), model.status()));
  } else {
    print_line("");
  }
  return 0;
}

// An interrupted answer stays in the history as far as it was generated, so that questions and
// answers alternate, as templates require.
int chat(const RunFlags& flags, ModelService& model) {
  fmt::print(stderr, "{} on {} rank{}. Ctrl-C ends an answer, Ctrl-D the conversation.\n",
             model.status().name, model.status().ranks.size(),
             model.status().ranks.size() == 1 ? "" : "s");
  JsonArray messages;
  while (true) {
    const std::unique_ptr<char, decltype(&std::free)> line(readline(">>> "), &std::free);
    if (!line) break;
    if (*line == '\0') continue;
    add_history(line.get());
    messages.push_back(chat_message("user", line.get()));
    auto answer = answer_messages(flags, model, messages);
    print_line("");
    if (answer.ok()) {
      Json said = chat_message("assistant", answer.value().message.content);
      const std::string& reasoning = answer.value().message.reasoning;
      if (!reasoning.empty()) said.get_object()["reasoning_content"] = reasoning;
      messages.push_back(std::move(said));
      continue;
    }
    fail(answer.error());
    messages.pop_back();
    if (answer.error().code == ErrorCode::kExhausted && !messages.empty()) {
      messages.clear();
      fmt::print(stderr, "The conversation starts again.\n");
    }
  }
  print_line("");
  return 0;
}

Result<int> run_run_command(const RunFlags& flags) {
  const bool is_chat = !flags.has_prompt && isatty(STDIN_FILENO) != 0;
  GroupSupervisorOptions options = TRY(group_options(flags.group));
  options.restarts = is_chat;  // a single answer is lost with its group
  const auto model = TRY(start_group(options));
  print_quantisation(flags.group, model->status());
  if (!model->tokenizer()) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format(
            "{} has no tokenizer, so it cannot read text; `lockstep logits` takes token ids",
            flags.group.model)};
  }
  if (flags.has_prompt) return answer_once(flags, *model, flags.prompt);
  if (is_chat) return chat(flags, *model);
  return answer_once(flags, *model, TRY(read_stdin(kPromptBytesMax)));
}

void add_sampling_flags(CLI::App& command, RunFlags& flags) {
  command.add_option("-n,--max-tokens", flags.max_tokens, "at most this many new tokens")
      ->check(at_least(1));
  command
      .add_option("--temperature", flags.temperature,
                  "0 takes the most probable token (default: the model's, else 0.8)")
      ->check(CLI::Range(0.0, 100.0));
  command
      .add_option("--top-k", flags.top_k,
                  "choose among this many tokens; 0: all (default: the model's, else all)")
      ->check(at_least(0));
  command
      .add_option("--top-p", flags.top_p,
                  "choose among the most probable tokens with this total probability (default: the "
                  "model's, else 1)")
      ->check(CLI::Range(0.0, 1.0));
}

}  // namespace

void add_run_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      app.add_subcommand("run", "answer one prompt and exit, or chat in the terminal");
  command
      ->add_option("MODEL", flags->group.model,
                   "a model folder, a .gguf file or a pulled model (org/name)")
      ->required();
  auto* prompt = command->add_option("PROMPT", flags->prompt,
                                     "what to answer (default: stdin, or a chat on a terminal)");
  command->add_flag("--raw", flags->raw,
                    "continue the plain text, without the model's chat template");
  add_sampling_flags(*command, *flags);
  auto* seed = command->add_option("--seed", flags->seed, "the same seed gives the same text");
  add_draft_flag(*command, flags->draft_tokens);
  command->add_flag("--json", flags->json, "one JSON value instead of text");
  add_group_flags(*command, flags->group);
  add_cache_flag(*command, flags->group, "default 0");
  add_bits_flag(*command, flags->group);
  command->callback([flags, prompt, seed, &chosen] {
    flags->has_prompt = prompt->count() > 0;
    flags->has_seed = seed->count() > 0;
    chosen = [flags] {
      auto status = run_run_command(*flags);
      return status.ok() ? status.value() : fail(status.error());
    };
  });
}

}  // namespace lockstep
