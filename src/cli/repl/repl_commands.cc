#include "cli/repl/repl_commands.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "cli/talk/dialogue.h"
#include "cluster/state/model_names.h"

namespace lockstep {
namespace {

struct ReplCommandEntry {
  std::string_view name;
  ReplCommand command;
  std::string_view argument;
  std::string_view about;
};

constexpr std::array kReplCommands = std::to_array<ReplCommandEntry>({
    {"/model", ReplCommand::kModel, "[NAME]", "talk to another model, loaded if need be"},
    {"/new", ReplCommand::kNew, "", "begin a new conversation"},
    {"/retry", ReplCommand::kRetry, "", "answer the last question again"},
    {"/undo", ReplCommand::kUndo, "", "forget the last question and its answer"},
    {"/edit", ReplCommand::kEdit, "", "ask the last question again, edited in $EDITOR"},
    {"/system", ReplCommand::kSystem, "[TEXT|off]", "the system message"},
    {"/set", ReplCommand::kSet, "[NAME VALUE|off]", "temperature, top_p, seed, max_tokens..."},
    {"/think", ReplCommand::kThink, "[on|off|high|show...]",
     "reasoning before an answer; show: the last one's"},
    {"/file", ReplCommand::kFile, "PATH", "add a text file to the next message"},
    {"/copy", ReplCommand::kCopy, "", "copy the last answer to the terminal's clipboard"},
    {"/save", ReplCommand::kSave, "PATH", "write the conversation to a file"},
    {"/load", ReplCommand::kLoad, "PATH", "go on with a saved conversation"},
    {"/export", ReplCommand::kExport, "PATH", "write the conversation as Markdown"},
    {"/stats", ReplCommand::kStats, "", "tokens and speed of this conversation"},
    {"/nodes", ReplCommand::kNodes, "", "the machines, and where the models are"},
    {"/help", ReplCommand::kHelp, "", "this list"},
    {"/quit", ReplCommand::kQuit, "", "leave, as Ctrl-D does"},
});

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n";
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

std::string unknown_sentence(std::string_view name) {
  constexpr size_t kNameMax = 32, kDistanceMax = 2;
  const std::string_view shown = name.substr(0, kNameMax);
  std::string_view nearest;
  size_t least = kDistanceMax + 1;
  for (const ReplCommandEntry& entry : kReplCommands) {
    const size_t distance = edit_distance(shown, entry.name);
    if (distance < least) nearest = entry.name;
    least = std::min(least, distance);
  }
  return nearest.empty()
             ? fmt::format("there is no command {}; /help lists them, // begins a message with /",
                           shown)
             : fmt::format("there is no command {}; did you mean {}?", shown, nearest);
}

std::vector<std::string_view> values_of(std::string_view command) {
  std::vector<std::string_view> values;
  if (command == "/set") {
    values = talk_option_names();
    values.push_back("off");
  } else if (command == "/think") {
    values.assign(kThinkValues.begin(), kThinkValues.end());
    values.push_back("show");
  }
  return values;
}

}  // namespace

ReplInput parse_repl_input(std::string_view text) {
  ReplInput input;
  if (!text.starts_with('/')) {
    input.rest = text;
    return input;
  }
  if (text.starts_with("//")) {
    input.rest = text.substr(1);
    return input;
  }
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view name = text.substr(0, end);
  input.rest = trimmed(text.substr(end));
  const std::string_view meant = name == "/bye" || name == "/exit" ? "/quit"
                                 : name == "/?"                    ? "/help"
                                                                   : name;
  const auto* entry = std::find_if(kReplCommands.begin(), kReplCommands.end(),
                                   [&](const ReplCommandEntry& one) { return one.name == meant; });
  input.kind = ReplInput::Kind::kUnknown;
  if (entry == kReplCommands.end()) {
    input.unknown = unknown_sentence(name);
    return input;
  }
  if (entry->argument.empty() && !input.rest.empty()) {
    input.unknown = fmt::format("{} takes no argument", name);
    return input;
  }
  input.kind = ReplInput::Kind::kCommand;
  input.command = entry->command;
  return input;
}

std::vector<std::string> complete_repl_line(std::string_view line,
                                            const std::vector<std::string>& models) {
  std::vector<std::string> found;
  if (!line.starts_with('/')) return found;
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) {
    for (const ReplCommandEntry& entry : kReplCommands) {
      if (entry.name.starts_with(line)) found.emplace_back(entry.name);
    }
    return found;
  }
  const std::string_view command = line.substr(0, space);
  const std::string_view word = line.substr(space + 1);
  if (word.find(' ') != std::string_view::npos) return found;
  for (const std::string_view value : values_of(command)) {
    if (value.starts_with(word)) found.emplace_back(value);
  }
  if (command == "/model") {
    std::copy_if(models.begin(), models.end(), std::back_inserter(found),
                 [&](const std::string& model) { return model.starts_with(word); });
  }
  return found;
}

bool completes_path(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return false;
  return std::any_of(kReplCommands.begin(), kReplCommands.end(), [&](const ReplCommandEntry& one) {
    return one.argument == "PATH" && one.name == line.substr(0, space);
  });
}

std::vector<std::string> repl_help_lines() {
  std::vector<std::string> lines;
  for (const ReplCommandEntry& entry : kReplCommands) {
    const std::string usage = fmt::format("{} {}", entry.name, entry.argument);
    lines.push_back(fmt::format("  {:<28} {}", usage, entry.about));
  }
  lines.emplace_back("  \"\"\"                          a message of several lines, up to \"\"\"");
  lines.emplace_back("  Alt-Enter, Ctrl-G            a new line; the whole message in $EDITOR");
  lines.emplace_back("  Ctrl-R, Tab                  search what was typed; complete a command");
  lines.emplace_back("  Ctrl-C, Ctrl-D               stop the answer, or clear the line; leave");
  return lines;
}

std::optional<std::string> MessageLines::push(std::string_view line) {
  constexpr std::string_view kMarks = "\"\"\"";
  if (!is_open_) {
    if (!line.starts_with(kMarks)) return std::string(line);
    is_open_ = true;
    text_.clear();
    line.remove_prefix(kMarks.size());
    if (line.empty()) return std::nullopt;
  }
  const bool is_end = line.ends_with(kMarks);
  if (is_end) line.remove_suffix(kMarks.size());
  text_ += line;
  if (!is_end) {
    text_ += '\n';
    return std::nullopt;
  }
  is_open_ = false;
  if (text_.ends_with('\n')) text_.pop_back();
  return std::exchange(text_, {});
}

void MessageLines::drop() {
  is_open_ = false;
  text_.clear();
}

}  // namespace lockstep
