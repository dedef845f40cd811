// Repl: a chat in the terminal: reads what the user types, has it answered, and acts on /commands.
// Blocks while the user types. Main thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/editor/line_editor.h"
#include "cli/repl/answer_view.h"
#include "cli/repl/repl_commands.h"
#include "cli/repl/run_memory.h"
#include "cli/talk/answerer.h"

namespace lockstep {

struct ReplOptions {
  TalkSettings settings;
  AnswerViewOptions view;
  bool keeps_history = true;
  std::optional<Dialogue> goes_on;  // with this one
  std::string attached;             // goes with the first message
};

class Repl {
 public:
  Repl(Answerer& answerer, ReplOptions options);

  // Until the user leaves; returns the exit status.
  int run();

 private:
  // The message that is typed; nullopt: the user leaves.
  std::optional<std::string> read_message();
  void note_interrupt(const std::string& text, bool is_empty_before);
  bool act(const ReplInput& input);  // false: leave
  void ask(std::string text);
  void answer();

  void choose_model(const std::string& name);
  void retry();
  void undo();
  void edit();
  void set_system(const std::string& text);
  void set_option(const std::string& text);
  void set_thinking(const std::string& text);
  void add_file(const std::string& path);
  void copy();
  void save(const std::string& path, const std::string& content);
  void load(const std::string& path);
  void show_stats();
  void show_nodes();

  std::vector<std::string> complete(std::string_view line);
  void say(std::string_view text);  // a dim line on stderr
  void complain(const Error& error);
  void keep_conversation();

  Answerer& answerer_;
  ReplOptions options_;
  Dialogue conversation_;
  RunMemory memory_;
  LineEditor editor_;
  std::string attached_;  // before the next message
  TalkFigures last_;
  int64_t answers_ = 0;
  int64_t new_tokens_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  int interrupts_ = 0;  // at an empty prompt, one after the other
  bool is_memory_broken_ = false;
};

// A text file as a part of a message: its name and its text between fences. kCorrupt: not UTF-8.
Result<std::string> attached_file(const std::string& path);

}  // namespace lockstep
