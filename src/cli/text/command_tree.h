// The commands and flags of the program as plain values, read from CLI11's tree, for what is made
// of all of them: completions of shells and the manual page.
#pragma once

#include <string>
#include <vector>

// Declared so that includers need not read CLI11.
namespace CLI {
class App;
}  // namespace CLI

namespace lockstep {

struct FlagText {
  std::vector<std::string> names;    // "--port", "-p"; empty: a positional argument
  std::string value;                 // "MODEL", "TEXT"; empty: it takes none
  std::vector<std::string> choices;  // of the value; empty: any
  std::string about;
};

struct CommandText {
  std::string name;
  std::string about;
  std::vector<FlagText> flags;      // hidden ones are left out
  std::vector<FlagText> arguments;  // positional
  std::vector<CommandText> commands;
};

CommandText command_text(const CLI::App& app);

}  // namespace lockstep
