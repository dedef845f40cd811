#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/bytes_text.h"
#include "base/files/mapped_file.h"
#include "base/files/private_file.h"
#include "base/utf8.h"
#include "cli/repl/repl.h"
#include "cli/talk/talk_text.h"
#include "cli/text/output.h"
#include "tokenizer/text/base64.h"

namespace lockstep {
namespace {

constexpr size_t kAttachedBytesMax = 1 << 20;
constexpr size_t kCompletionsMax = 64;

// Entries of the folder of a path that is being typed; folders end with a slash.
std::vector<std::string> paths_that_begin(std::string_view typed) {
  const size_t slash = typed.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : typed.substr(0, slash + 1));
  const std::string name(slash == std::string_view::npos ? typed : typed.substr(slash + 1));
  std::vector<std::string> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error), end;
  for (; !error && entry != end && found.size() < kCompletionsMax; entry.increment(error)) {
    const std::string own = entry->path().filename().string();
    const bool is_hidden = own.starts_with('.') && !name.starts_with('.');
    if (!own.starts_with(name) || is_hidden) continue;
    std::error_code ignored;
    found.push_back(folder + own + (entry->is_directory(ignored) ? "/" : ""));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Result<std::string> attached_file(const std::string& path) {
  const std::string text = TRY(read_small_file(path, kAttachedBytesMax));
  if (!is_valid_utf8(text) || text.find('\0') != std::string::npos) {
    return Error{ErrorCode::kCorrupt, path + " is not a text file"};
  }
  // A fence that the text does not have.
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  const std::string name = std::filesystem::path(path).filename().string();
  return fmt::format("{}\n{}\n{}{}{}\n\n", name, fence, text, text.ends_with('\n') ? "" : "\n",
                     fence);
}

std::vector<std::string> Repl::complete(std::string_view line) {
  if (completes_path(line)) return paths_that_begin(line.substr(line.find(' ') + 1));
  const bool needs_models = line.starts_with("/model ");
  std::vector<std::string> models;
  if (needs_models) models = answerer_.known_models();
  return complete_repl_line(line, models);
}

void Repl::choose_model(const std::string& name) {
  const Status chosen = answerer_.choose_model(name);
  if (!chosen.ok()) return complain(chosen.error());
  last_ = {};
  say(fmt::format("{} answers from now on, with the conversation so far.",
                  harmless_line(answerer_.model())));
}

void Repl::retry() {
  auto question = conversation_.take_back();
  if (!question) return say("There is no question to answer again.");
  conversation_.ask(std::move(*question));
  answer();
}

void Repl::undo() {
  if (!conversation_.take_back()) return say("There is nothing to forget.");
  last_ = {};
  say(fmt::format("Forgotten; {} left.", counted(conversation_.messages().size(), "message")));
}

void Repl::edit() {
  auto question = conversation_.take_back();
  const auto edited = edit_in_editor(question.value_or(""));
  if (edited.ok() && !edited.value().empty()) return ask(edited.value());
  if (!edited.ok()) complain(edited.error());
  say(question ? "The question is gone; the Up key has it." : "There is nothing to ask.");
}

void Repl::set_system(const std::string& text) {
  if (text.empty()) {
    return say(conversation_.system.empty() ? "There is no system message."
                                            : harmless_text(conversation_.system));
  }
  conversation_.system = text == "off" ? "" : text;
  say(text == "off" ? "No system message." : "The system message is set.");
}

void Repl::set_option(const std::string& text) {
  JsonObject& options = options_.settings.options;
  const size_t space = text.find(' ');
  if (text == "off") {
    options.clear();
  } else if (!text.empty() && space == std::string::npos) {
    return say("Write /set NAME VALUE, as in /set temperature 0.5.");
  } else if (!text.empty()) {
    const std::string name = text.substr(0, space);
    auto value = parse_talk_option(name, text.substr(text.find_first_not_of(' ', space)));
    if (!value.ok()) return complain(value.error());
    options[name] = std::move(value.value());
  }
  const std::string set = talk_options_text(options);
  say(set.empty() ? "The model's own options." : set);
}

void Repl::set_thinking(const std::string& text) {
  if (text == "show") {
    const TalkMessage* last = conversation_.last_answer();
    const bool has_any = last != nullptr && !last->reasoning.empty();
    return say(has_any ? harmless_text(last->reasoning) : "The last answer has no reasoning.");
  }
  const bool is_known = is_think_value(text);
  if (!is_known && !text.empty()) return say("Write /think on, off, low, medium, high or auto.");
  if (is_known) options_.settings.thinking = text == "auto" ? "" : text;
  const std::string& thinking = options_.settings.thinking;
  say(fmt::format("Reasoning: {}.", thinking.empty() ? "as the model does by itself" : thinking));
}

void Repl::add_file(const std::string& path) {
  if (path.empty()) return say("Write /file PATH.");
  const auto text = attached_file(path);
  if (!text.ok()) return complain(text.error());
  attached_ += text.value();
  say(fmt::format("{}, {}, goes with the next message.", path, bytes_text(text.value().size())));
}

// OSC 52 of xterm: the terminal sets its clipboard, also over ssh. Terminals may refuse it.
void Repl::copy() {
  const TalkMessage* last = conversation_.last_answer();
  if (last == nullptr) return say("There is no answer to copy.");
  if (!options_.view.out.may_repaint) return say("This terminal has no clipboard; /save writes.");
  fmt::print(stdout, "\x1b]52;c;{}\x07", encode_base64(last->content));
  std::fflush(stdout);
  say(fmt::format("{} sent to the terminal's clipboard.", bytes_text(last->content.size())));
}

void Repl::save(const std::string& path, const std::string& content) {
  if (path.empty()) return say("Write the file's path too.");
  // Never over a file that exists: it may be something else.
  const auto created = create_private_file(path, content);
  if (!created.ok()) return complain(created.error());
  if (!created.value()) return say(fmt::format("{} exists and is left as it is.", path));
  say(fmt::format("Written: {}", path));
}

void Repl::load(const std::string& path) {
  if (path.empty()) return say("Write /load PATH.");
  constexpr size_t kConversationBytesMax = 16 << 20;
  const auto text = read_small_file(path, kConversationBytesMax);
  if (!text.ok()) return complain(text.error());
  auto read = Dialogue::parse(text.value());
  if (!read.ok()) {
    return complain(Error{read.error().code, fmt::format("{}: {}", path, read.error().message)});
  }
  conversation_ = std::move(read.value());
  conversation_.model = answerer_.model();
  last_ = {};
  say(fmt::format("{} loaded.", counted(conversation_.messages().size(), "message")));
}

void Repl::show_stats() {
  const std::string last = figures_line(last_);
  say(fmt::format("last answer: {}", last.empty() ? "none" : last));
  say(fmt::format("since the start: {}, {} tokens written, {} read, {} of them reused",
                  counted(static_cast<uint64_t>(answers_), "answer"), grouped_text(new_tokens_),
                  grouped_text(prompt_tokens_), grouped_text(cached_tokens_)));
}

void Repl::show_nodes() {
  const auto lines = answerer_.node_lines();
  if (!lines.ok()) return complain(lines.error());
  for (const std::string& line : lines.value()) fmt::print(stderr, "{}\n", line);
}

}  // namespace lockstep
