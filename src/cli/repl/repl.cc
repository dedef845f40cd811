#include "cli/repl/repl.h"

#include <fmt/core.h>

#include <cstdio>
#include <utility>

#include "cli/flags/interrupt.h"
#include "cli/talk/talk_text.h"
#include "cli/text/output.h"
#include "cli/text/wait_line.h"

namespace lockstep {

Repl::Repl(Answerer& answerer, ReplOptions options)
    : answerer_(answerer),
      options_(std::move(options)),
      memory_(options_.keeps_history),
      editor_(options_.view.out.may_repaint,
              [this](std::string_view line) { return complete(line); }),
      attached_(std::move(options_.attached)) {
  if (options_.goes_on) conversation_ = std::move(*options_.goes_on);
  conversation_.model = answerer_.model();
  for (const std::string& line : memory_.lines()) editor_.remember(line);
}

int Repl::run() {
  const InterruptGuard guard;  // also between two prompts Ctrl-C does not end the chat
  say(fmt::format("{} {}. /help; Ctrl-C stops, Ctrl-D leaves.", harmless_line(answerer_.model()),
                  answerer_.place()));
  if (!conversation_.is_empty()) {
    say(fmt::format("The last conversation goes on, {}.",
                    counted(conversation_.messages().size(), "message")));
  }
  while (true) {
    auto message = read_message();
    if (!message) break;
    if (message->find_first_not_of(" \t\n") == std::string::npos) continue;
    const ReplInput input = parse_repl_input(*message);
    editor_.remember(*message);
    const Status added = memory_.add_line(*message);
    if (!added.ok() && !std::exchange(is_memory_broken_, true)) {
      say(fmt::format("Cannot save the input history: {}.", added.error().message));
    }
    if (input.kind == ReplInput::Kind::kMessage) {
      ask(input.rest);
    } else if (input.kind == ReplInput::Kind::kUnknown) {
      complain({ErrorCode::kInvalidArgument, input.unknown});
    } else if (!act(input)) {
      break;
    }
  }
  return 0;
}

std::optional<std::string> Repl::read_message() {
  MessageLines lines;
  const int64_t used = last_.prompt_tokens >= 0 && last_.new_tokens >= 0
                           ? last_.prompt_tokens + last_.new_tokens
                           : 0;
  const std::string prompt =
      talk_prompt(harmless_line(answerer_.model()), used, answerer_.context());
  while (true) {
    InterruptGuard::forget();  // of the last answer
    const Typed typed = editor_.read(lines.is_open() ? "... " : prompt);
    if (typed.kind == Typed::Kind::kEnd) {
      print_line("");
      return std::nullopt;
    }
    if (typed.kind == Typed::Kind::kInterrupted) {
      note_interrupt(typed.text, !lines.is_open());
      lines.drop();
      continue;
    }
    interrupts_ = 0;
    if (auto message = lines.push(typed.text)) return message;
  }
}

// Ctrl-C clears a line; in an empty one, the second says how to leave.
void Repl::note_interrupt(const std::string& text, bool is_empty_before) {
  const bool is_empty = text.empty() && is_empty_before;
  interrupts_ = is_empty ? interrupts_ + 1 : 0;
  if (interrupts_ < 2) return;
  interrupts_ = 0;
  say("Ctrl-D or /quit leaves.");
}

void Repl::ask(std::string text) {
  conversation_.ask(std::exchange(attached_, "") + text);
  answer();
}

// An interrupted answer stays as far as it was made, so that questions and answers alternate, as
// templates require. A question without any answer is taken back.
void Repl::answer() {
  conversation_.model = answerer_.model();
  AnswerView view(options_.view);
  auto made = answerer_.answer(conversation_, options_.settings, view);
  view.finish(made.ok());
  if (!made.ok()) {
    conversation_.take_back();
    return complain(made.error());
  }
  TalkAnswer& answer = made.value();
  if (answer.error && answer.content.empty()) {
    conversation_.take_back();
  } else {
    conversation_.answer(std::move(answer.content), std::move(answer.reasoning));
  }
  last_ = answer.figures;
  ++answers_;
  new_tokens_ += std::max<int64_t>(0, last_.new_tokens);
  prompt_tokens_ += std::max<int64_t>(0, last_.prompt_tokens);
  cached_tokens_ += std::max<int64_t>(0, last_.cached_tokens);
  if (answer.error && answer.error->code != ErrorCode::kCancelled) {
    complain(*answer.error);
    say("/retry asks again.");
  } else {
    std::string line = figures_line(last_);
    if (answer.error) line += line.empty() ? "stopped" : ", stopped";
    if (answer.finish_reason == "length") line += ", cut off by its limit";
    if (!line.empty()) say(line);
  }
  keep_conversation();
}

void Repl::keep_conversation() {
  const Status kept = memory_.keep(conversation_);
  if (kept.ok() || std::exchange(is_memory_broken_, true)) return;
  say(fmt::format("Cannot save the conversation: {}.", kept.error().message));
}

void Repl::say(std::string_view text) {
  print_dim(options_.view.err, text);
}

void Repl::complain(const Error& error) {
  fmt::print(stderr, "{}\n", harmless_text(error.message));
}

bool Repl::act(const ReplInput& input) {
  switch (input.command) {
    case ReplCommand::kModel:
      choose_model(input.rest);
      break;
    case ReplCommand::kNew:
      conversation_.clear();
      last_ = {};
      say("A new conversation.");
      break;
    case ReplCommand::kRetry:
      retry();
      break;
    case ReplCommand::kUndo:
      undo();
      break;
    case ReplCommand::kEdit:
      edit();
      break;
    case ReplCommand::kSystem:
      set_system(input.rest);
      break;
    case ReplCommand::kSet:
      set_option(input.rest);
      break;
    case ReplCommand::kThink:
      set_thinking(input.rest);
      break;
    case ReplCommand::kFile:
      add_file(input.rest);
      break;
    case ReplCommand::kCopy:
      copy();
      break;
    case ReplCommand::kSave:
      save(input.rest, conversation_.saved());
      break;
    case ReplCommand::kLoad:
      load(input.rest);
      break;
    case ReplCommand::kExport:
      save(input.rest, conversation_.markdown());
      break;
    case ReplCommand::kStats:
      show_stats();
      break;
    case ReplCommand::kNodes:
      show_nodes();
      break;
    case ReplCommand::kHelp:
      for (const std::string& line : repl_help_lines()) fmt::print(stderr, "{}\n", line);
      break;
    case ReplCommand::kQuit:
      return false;
  }
  return true;
}

}  // namespace lockstep
