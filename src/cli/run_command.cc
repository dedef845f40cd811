// `lockstep run`: answer one prompt, or chat in the terminal.
#include <editline/readline.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "cli/commands.h"
#include "cli/generate.h"
#include "cli/group_flags.h"
#include "cli/output.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

constexpr size_t kPromptBytesMax = size_t{16} << 20;

struct Flags {
  GroupFlags group;
  std::string prompt;
  bool has_prompt = false;
  int max_tokens = 0;  // 0: what the context holds
  float temperature = 0.8f;
  int top_k = 0;
  float top_p = 1.0f;
  uint64_t seed = 0;
  bool has_seed = false;
  bool json = false;
};

struct Answer {
  std::string text;
  size_t prompt_tokens = 0;
  Generated generation;
};

GenerateRequest request_for(const Flags& flags, std::vector<int32_t> prompt,
                            const ModelService& model) {
  const int room = model.status().context - static_cast<int>(prompt.size()) + 1;
  return {.prompt = std::move(prompt),
          .max_tokens = flags.max_tokens > 0 ? flags.max_tokens : std::max(room, 1),
          .stop_ids = model.stop_ids(),
          .sampling = {.temperature = flags.temperature,
                       .top_k = flags.top_k,
                       .top_p = flags.top_p,
                       .seed = flags.has_seed ? flags.seed : std::random_device{}()}};
}

// Continues `text`; prints the pieces as they come unless the whole is wanted as JSON.
Result<Answer> continue_text(const Flags& flags, ModelService& model, const std::string& text) {
  const auto tokenizer = model.tokenizer();
  Answer answer;
  std::vector<int32_t> prompt = tokenizer->encode(text, {.add_bos = true});
  answer.prompt_tokens = prompt.size();
  StreamDecoder decoder(tokenizer, text.empty());
  const auto show = [&](const std::string& piece) {
    answer.text += piece;
    if (flags.json || piece.empty()) return;
    fmt::print("{}", piece);
    std::fflush(stdout);
  };
  answer.generation = TRY(generate_and_wait(model, request_for(flags, std::move(prompt), model),
                                            [&](int32_t token) { show(decoder.push(token)); }));
  show(decoder.finish());
  return answer;
}

Json json_of(const Answer& answer, const ModelStatus& status) {
  const Generated& g = answer.generation;
  JsonObject object{{"text", answer.text},
                    {"tokens", JsonArray(g.tokens.begin(), g.tokens.end())},
                    {"prompt_tokens", answer.prompt_tokens},
                    {"completion_tokens", g.tokens.size()},
                    {"finish_reason", g.reason == FinishReason::kStop ? "stop" : "length"}};
  if (!g.tokens.empty()) {
    object["first_token_s"] = seconds_between(g.started, g.first_token);
    object["total_s"] = seconds_between(g.started, g.last_token);
  }
  JsonArray pids;
  for (const RankStatus& rank : status.ranks) pids.push_back(rank.pid);
  object["pids"] = std::move(pids);
  return object;
}

int answer_once(const Flags& flags, ModelService& model, const std::string& prompt) {
  auto answer = continue_text(flags, model, prompt);
  if (!answer.ok()) return fail(answer.error());
  if (flags.json) {
    print_json(json_of(answer.value(), model.status()));
  } else {
    print_line("");
  }
  return 0;
}

// Until templates are known to lockstep a conversation is its plain text, line by line.
int chat(const Flags& flags, ModelService& model) {
  fmt::print(stderr, "{} on {} rank{}. Ctrl-C ends an answer, Ctrl-D the conversation.\n",
             model.status().name, model.status().ranks.size(),
             model.status().ranks.size() == 1 ? "" : "s");
  std::string conversation;
  while (true) {
    const std::unique_ptr<char, decltype(&std::free)> line(readline(">>> "), &std::free);
    if (!line) break;
    if (*line == '\0') continue;
    add_history(line.get());
    conversation += std::string(line.get()) + "\n";
    auto answer = continue_text(flags, model, conversation);
    print_line("");
    if (answer.ok()) {
      conversation += answer.value().text + "\n";
    } else if (answer.error().code != ErrorCode::kCancelled) {
      fail(answer.error());
      if (answer.error().code == ErrorCode::kExhausted) conversation.clear();
    }
  }
  print_line("");
  return 0;
}

Result<int> run(const Flags& flags) {
  const auto model = TRY(start_group(TRY(group_options(flags.group))));
  if (!model->tokenizer()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} has no tokenizer.json, so that text cannot be read; `lockstep "
                             "logits` takes token ids",
                             flags.group.model)};
  }
  if (flags.has_prompt) return answer_once(flags, *model, flags.prompt);
  if (isatty(STDIN_FILENO) != 0) return chat(flags, *model);
  return answer_once(flags, *model, TRY(read_stdin(kPromptBytesMax)));
}

void add_sampling_flags(CLI::App& command, Flags& flags) {
  command.add_option("-n,--max-tokens", flags.max_tokens, "at most this many new tokens")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--temperature", flags.temperature,
                  "0 takes the most probable token (default 0.8)")
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--top-k", flags.top_k, "choose among this many tokens; 0: all (default)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--top-p", flags.top_p, "choose among tokens of this probability together")
      ->check(CLI::Range(0.0, 1.0));
}

}  // namespace

void add_run_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("run", "answer one prompt and exit, or chat in the terminal");
  command->add_option("MODEL", flags->group.model, "a model folder")->required();
  auto* prompt = command->add_option("PROMPT", flags->prompt,
                                     "what to continue (default: stdin, or a chat on a terminal)");
  add_sampling_flags(*command, *flags);
  auto* seed = command->add_option("--seed", flags->seed, "the same seed gives the same text");
  command->add_flag("--json", flags->json, "one JSON value instead of text");
  add_group_flags(*command, flags->group);
  command->callback([flags, prompt, seed, &chosen] {
    flags->has_prompt = prompt->count() > 0;
    flags->has_seed = seed->count() > 0;
    chosen = [flags] {
      auto status = run(*flags);
      return status.ok() ? status.value() : fail(status.error());
    };
  });
}

}  // namespace lockstep
