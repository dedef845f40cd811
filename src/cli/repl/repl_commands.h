// The /commands of a chat in the terminal: their names, what they take, how they are completed.
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class ReplCommand {
  kModel,
  kNew,
  kRetry,
  kUndo,
  kEdit,
  kSystem,
  kSet,
  kThink,
  kFile,
  kCopy,
  kSave,
  kLoad,
  kExport,
  kStats,
  kNodes,
  kHelp,
  kQuit,
};

struct ReplInput {
  enum class Kind { kMessage, kCommand, kUnknown };
  Kind kind = Kind::kMessage;
  ReplCommand command = ReplCommand::kHelp;
  std::string rest;     // of a command: its argument, without spaces around it
  std::string unknown;  // a sentence, with the command that was perhaps meant
};

// A message that begins with a slash is written with two.
ReplInput parse_repl_input(std::string_view text);

// Texts that may replace the word before the cursor, in a line up to there: commands, and values of
// those that take a fixed set. Paths and models are left to the caller: see completes_path().
std::vector<std::string> complete_repl_line(std::string_view line,
                                            const std::vector<std::string>& models);
// Whether the word is a path: the argument of this command is PATH.
bool completes_path(std::string_view line);

std::vector<std::string> repl_help_lines();

// Lines of a message between `"""` and `"""`, as they are typed.
class MessageLines {
 public:
  // The message, once it is complete.
  std::optional<std::string> push(std::string_view line);
  bool is_open() const { return is_open_; }  // more lines are to come
  void drop();

 private:
  bool is_open_ = false;
  std::string text_;
};

}  // namespace lockstep
