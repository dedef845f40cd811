// `lockstep run`: answers one prompt, or chats in the terminal, by the node of this machine or with
// workers of its own.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files/mapped_file.h"
#include "cli/client/node_client.h"
#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/repl/one_answer.h"
#include "cli/repl/repl.h"
#include "cli/talk/local_answerer.h"
#include "cli/talk/model_picker.h"
#include "cli/talk/node_answerer.h"
#include "cli/text/output.h"
#include "cli/text/wait_line.h"

namespace lockstep {
namespace {

constexpr size_t kPromptBytesMax = size_t{16} << 20;
constexpr size_t kSchemaBytesMax = size_t{1} << 20;

struct RunFlags {
  GroupFlags group;
  NodeFlags node;
  std::string prompt;
  std::vector<std::string> files;
  std::string schema;
  JsonObject options;  // of the request: temperature...
  int draft_tokens = 0;
  bool has_prompt = false;
  bool raw = false;
  bool local = false;       // asked for, or meant by a flag of own workers
  bool names_node = false;  // --host or --port
  bool goes_on = false;     // -c
  bool code_only = false;   // -x
  bool plain = false;
  bool keeps_history = true;
  bool json = false;
};

// The settings and texts of flags and files, read before a model is loaded, which may take long.
struct Wanted {
  TalkSettings settings;
  std::string attached;          // the files
  std::optional<Dialogue> last;  // with -c
};

AnswerViewOptions view_of(const RunFlags& flags) {
  AnswerViewOptions view;
  view.out = stdout_manner();
  view.err = stderr_manner();
  view.is_plain = flags.plain || flags.raw;
  if (flags.plain) view.out.has_colour = view.err.has_colour = false;
  return view;
}

void say_dim(std::string_view text) {
  const TerminalManner manner = stderr_manner();
  if (!manner.is_terminal) return;  // a script's stderr is for errors
  print_dim(manner, text);
}

Result<TalkSettings> settings_of(const RunFlags& flags) {
  TalkSettings settings;
  settings.options = flags.options;
  settings.is_raw = flags.raw;
  if (flags.schema.empty()) return settings;
  const std::string text = TRY(read_small_file(flags.schema, kSchemaBytesMax));
  auto schema = parse_untrusted_json(text);
  if (!schema.ok()) {
    return Error{ErrorCode::kCorrupt, fmt::format("the schema {} is not JSON: {}", flags.schema,
                                                  schema.error().message)};
  }
  if (!schema.value().is_object() && !schema.value().is_bool()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not a JSON schema, which is an object", flags.schema)};
  }
  if (flags.raw) {
    return Error{ErrorCode::kInvalidArgument,
                 "a schema holds only for answers of a chat; leave out --raw"};
  }
  settings.schema = std::move(schema.value());
  return settings;
}

Result<Wanted> wanted_of(const RunFlags& flags) {
  Wanted wanted{.settings = TRY(settings_of(flags))};
  for (const std::string& file : flags.files) wanted.attached += TRY(attached_file(file));
  if (!flags.goes_on) return wanted;
  wanted.last = TRY(RunMemory(flags.keeps_history).conversation());
  if (wanted.last) return wanted;
  return Error{ErrorCode::kNotFound, "there is no conversation to go on with (-c)"};
}

// Files, stdin and PROMPT together are one message, in this order, as in `cat log | lockstep run
// MODEL Why?`.
Result<std::string> message_of(const RunFlags& flags, const std::string& attached) {
  // A prompt is whole by itself: the stdin of a service or a remote shell is not awaited.
  const bool reads_stdin = !flags.has_prompt || stdin_is_given();
  std::string input = reads_stdin ? TRY(read_stdin(kPromptBytesMax)) : "";
  if (!flags.has_prompt) return attached + input;
  if (!input.empty() && !input.ends_with('\n')) input += '\n';
  if (!input.empty()) input += '\n';
  return attached + input + flags.prompt;
}

bool is_chat(const RunFlags& flags) {
  return !flags.has_prompt && !flags.json && !flags.code_only && isatty(STDIN_FILENO) != 0;
}

Result<int> talk(const RunFlags& flags, Wanted wanted, Answerer& answerer,
                 const std::string& node) {
  const AnswerViewOptions view = view_of(flags);
  if (is_chat(flags)) {
    Repl repl(answerer, {std::move(wanted.settings), view, flags.keeps_history,
                         std::move(wanted.last), std::move(wanted.attached)});
    return repl.run();
  }
  Dialogue conversation = std::move(wanted.last).value_or(Dialogue());
  conversation.ask(TRY(message_of(flags, wanted.attached)));
  TRY(answer_once(answerer, conversation,
                  {wanted.settings, view, flags.json, flags.code_only, node}));
  // Scripts leave nothing on the disk unless they ask for it.
  if (flags.goes_on || view.out.is_terminal) {
    TRY(RunMemory(flags.keeps_history).keep(conversation));
  }
  return 0;
}

Result<int> run_locally(const RunFlags& flags, Wanted wanted) {
  TRY(LocalAnswerer::check(wanted.settings));
  if (flags.group.model.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "name a model: a folder, a .gguf file or a pulled model (org/name)"};
  }
  GroupSupervisorOptions options = TRY(group_options(flags.group));
  options.restarts = is_chat(flags);  // a single answer is lost with its group
  const auto model = TRY(start_group(options));
  print_quantisation(flags.group, model->status());
  if (!model->tokenizer()) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format(
            "{} has no tokenizer, so it cannot read text; `lockstep logits` takes token ids",
            flags.group.model)};
  }
  LocalAnswerer answerer(*model, flags.draft_tokens);
  return talk(flags, std::move(wanted), answerer, "");
}

// `status`: the node's.
Result<int> run_at_node(const RunFlags& flags, Wanted wanted, Json status) {
  std::string text = flags.group.model;
  if (text.empty()) {
    text = TRY(pick_model(flags.node, status, false));
    status = TRY(ask_node(flags.node, "/cluster/status"));  // the user may have taken a while
  }
  const TerminalManner manner = stderr_manner();
  NodeModel model = TRY(open_node_model(flags.node, status, text, manner));
  NodeAnswerer answerer(flags.node, std::move(model), manner);
  return talk(flags, std::move(wanted), answerer,
              fmt::format("http://{}:{}", flags.node.host, flags.node.port));
}

// The status of the node that is to answer; nullopt: own workers are, the way out if no node runs
// here, or one that can load no models and has others.
Result<std::optional<Json>> status_of_node(const RunFlags& flags) {
  if (flags.local) return std::optional<Json>();
  auto status = ask_node(flags.node, "/cluster/status");
  const bool is_named = !flags.group.model.empty();
  if (!status.ok()) {
    const bool may_run_here = status.error().code == ErrorCode::kPeerLost && !flags.names_node;
    if (!may_run_here) return status.error();
    if (!is_named) {
      return Error{ErrorCode::kInvalidArgument,
                   "no node runs on this machine, so name a model: a folder, a .gguf file or a "
                   "pulled model (org/name)"};
    }
    say_dim("No node runs on this machine, so the model runs in this process (--local).");
    return std::optional<Json>();
  }
  if (!is_named || flags.names_node || !can_load_nothing(status.value()) ||
      serves_model(status.value(), flags.group.model)) {
    return std::optional(std::move(status.value()));
  }
  say_dim(
      "The node of this machine has other models and loads none (serve --alone), so this one "
      "runs in this process (--local).");
  return std::optional<Json>();
}

Result<int> run_run_command(const RunFlags& flags) {
  Wanted wanted = TRY(wanted_of(flags));
  auto status = TRY(status_of_node(flags));
  return status ? run_at_node(flags, std::move(wanted), std::move(*status))
                : run_locally(flags, std::move(wanted));
}

void add_sampling_flags(CLI::App& command, RunFlags& flags) {
  const auto whole = [&flags](const char* name) {
    return [&flags, name](const int64_t& value) { flags.options[name] = value; };
  };
  const auto real = [&flags](const char* name) {
    return [&flags, name](const double& value) { flags.options[name] = value; };
  };
  command
      .add_option_function<int64_t>("-n,--max-tokens", whole("max_tokens"),
                                    "at most this many new tokens")
      ->check(at_least(1));
  command
      .add_option_function<double>(
          "--temperature", real("temperature"),
          "0 takes the most probable token (default: the model's, else 0.8, of a node 1)")
      ->check(CLI::Range(0.0, 100.0));
  command
      .add_option_function<int64_t>(
          "--top-k", whole("top_k"),
          "choose among this many tokens; 0: all (default: the model's, else all)")
      ->check(at_least(0));
  command
      .add_option_function<double>(
          "--top-p", real("top_p"),
          "choose among the most probable tokens with this total probability (default: the "
          "model's, else 1)")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option_function<int64_t>("--seed", whole("seed"),
                                       "the same seed gives the same text");
}

void add_answer_flags(CLI::App& command, RunFlags& flags) {
  command.add_flag("--raw", flags.raw,
                   "continue the plain text, without the model's chat template");
  command.add_option("-f,--file", flags.files, "a text file before the prompt (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command.add_flag("-c,--continue", flags.goes_on, "go on with the last conversation");
  command.add_flag("-x,--extract", flags.code_only, "print only the answer's first block of code");
  command
      .add_option("--schema", flags.schema,
                  "the answer is JSON that matches this schema (of a "
                  "node only)")
      ->type_name("FILE");
  command.add_flag("--plain", flags.plain, "no colours and no Markdown on a terminal");
  command.add_flag("!--no-history", flags.keeps_history,
                   "neither read nor keep what is typed and answered");
  command.add_flag("--json", flags.json, "one JSON value instead of text");
}

// Flags of own workers; each of them means --local.
std::set<const CLI::Option*> add_local_flags(CLI::App& command, RunFlags& flags) {
  const auto known = command.get_options();
  const std::set<const CLI::Option*> before(known.begin(), known.end());
  command.add_flag("--local", flags.local,
                   "with own workers, even if a node runs; meant by every flag that follows");
  add_draft_flags(command, flags.draft_tokens, flags.group);
  add_group_flags(command, flags.group);
  add_cache_flag(command, flags.group, "default 0");
  add_bits_flag(command, flags.group);
  std::set<const CLI::Option*> added;
  for (const CLI::Option* option : command.get_options()) {
    if (!before.contains(option)) added.insert(option);
  }
  return added;
}

}  // namespace

void add_run_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command =
      app.add_subcommand("run", "answer one prompt and exit, or chat in the terminal");
  command->add_option("MODEL", flags->group.model,
                      "a model of the node, a model folder, a .gguf file or a model of the hub "
                      "(org/name); default: the node's, or a list");
  auto* prompt = command->add_option("PROMPT", flags->prompt,
                                     "what to answer, after stdin (default: a chat on a terminal)");
  add_sampling_flags(*command, *flags);
  add_answer_flags(*command, *flags);
  add_node_flags(*command, flags->node);
  const auto* host = command->get_option("--host");
  const auto* port = command->get_option("--port");
  const auto local_flags = add_local_flags(*command, *flags);
  command->callback([flags, prompt, host, port, local_flags, &chosen] {
    flags->has_prompt = prompt->count() > 0;
    flags->names_node = host->count() > 0 || port->count() > 0;
    for (const CLI::Option* option : local_flags) flags->local |= option->count() > 0;
    chosen = [flags] {
      auto status = run_run_command(*flags);
      return status.ok() ? status.value() : fail(status.error());
    };
  });
}

}  // namespace lockstep
