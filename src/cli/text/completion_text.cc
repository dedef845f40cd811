#include "cli/text/completion_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

namespace lockstep {
namespace {

// 'it'\''s' for every shell here.
std::string shell_word(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Calls for each command but the program itself, with the path to it: " bench serve".
void for_each_command(const CommandText& command, const std::string& path,
                      const std::function<void(const CommandText&, const std::string&)>& call) {
  for (const CommandText& one : command.commands) {
    const std::string own = path + " " + one.name;
    call(one, own);
    for_each_command(one, own, call);
  }
}

// A pattern of a case: ' run'|' serve'|...
std::string known_paths(const CommandText& program) {
  std::string paths;
  for_each_command(program, "", [&](const CommandText&, const std::string& path) {
    paths += (paths.empty() ? "" : "|") + shell_word(path);
  });
  return paths;
}

// The words that may follow a command or, after a flag, are its value.
std::string words_of(const CommandText& command) {
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : " ") + word; };
  for (const CommandText& one : command.commands) add(one.name);
  for (const FlagText& argument : command.arguments) {
    for (const std::string& choice : argument.choices) add(choice);
  }
  return words;
}

std::string choices_of(const FlagText& flag) {
  return fmt::format("{}", fmt::join(flag.choices, " "));
}

std::string flags_of(const CommandText& command) {
  std::string flags;
  for (const FlagText& flag : command.flags) {
    for (const std::string& name : flag.names) flags += (flags.empty() ? "" : " ") + name;
  }
  return flags;
}

std::string bash_case(const CommandText& command, const std::string& path) {
  std::string text = fmt::format("    {}) words={} flags={}\n", shell_word(path),
                                 shell_word(words_of(command)), shell_word(flags_of(command)));
  std::string values;
  for (const FlagText& flag : command.flags) {
    if (flag.value.empty()) continue;
    values += fmt::format("        {}) is_value=1 words={} ;;\n", fmt::join(flag.names, "|"),
                          shell_word(choices_of(flag)));
  }
  if (!values.empty()) text += "      case \"$before\" in\n" + values + "      esac\n";
  return text + "      ;;\n";
}

// zsh's lists have 'word:what it is', where a colon in the word is escaped.
std::string zsh_entry(std::string_view word, std::string_view about) {
  return shell_word(fmt::format("{}:{}", word, about));
}

std::string zsh_case(const CommandText& command, const std::string& path) {
  std::string words, flags;
  for (const CommandText& one : command.commands) words += " " + zsh_entry(one.name, one.about);
  for (const FlagText& argument : command.arguments) {
    for (const std::string& choice : argument.choices) words += " " + zsh_entry(choice, "");
  }
  for (const FlagText& flag : command.flags) {
    for (const std::string& name : flag.names) flags += " " + zsh_entry(name, flag.about);
  }
  return fmt::format("    {}) commands=({} ) flags=({} ) ;;\n", shell_word(path), words, flags);
}

// Where a line of fish applies: its words so far name this command and none below it.
std::string fish_condition(const CommandText& command, const std::string& path) {
  if (path.empty()) return "__fish_use_subcommand";
  std::string condition;
  for (size_t at = 1; at < path.size();) {
    const size_t end = std::min(path.find(' ', at), path.size());
    condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                             path.substr(at, end - at));
    at = end + 1;
  }
  if (command.commands.empty()) return condition;
  condition += "; and not __fish_seen_subcommand_from";
  for (const CommandText& one : command.commands) condition += " " + one.name;
  return condition;
}

std::string fish_lines(const CommandText& command, const std::string& path) {
  const std::string start =
      fmt::format("complete -c lockstep -n {}", shell_word(fish_condition(command, path)));
  std::string text;
  for (const CommandText& one : command.commands) {
    text += fmt::format("{} -f -a {} -d {}\n", start, one.name, shell_word(one.about));
  }
  for (const FlagText& argument : command.arguments) {
    for (const std::string& choice : argument.choices) {
      text += fmt::format("{} -f -a {}\n", start, shell_word(choice));
    }
  }
  for (const FlagText& flag : command.flags) {
    std::string line = start;
    for (const std::string& name : flag.names) {
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    const std::string choices = choices_of(flag);
    if (!flag.value.empty()) line += choices.empty() ? " -r" : " -x -a " + shell_word(choices);
    text += line + " -d " + shell_word(flag.about) + "\n";
  }
  return text;
}

}  // namespace

std::string bash_completion(const CommandText& program) {
  std::string text = fmt::format(R"(# Made by `lockstep completion bash`.
_lockstep() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local at='' next i words='' flags='' is_value=0
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="$at ${{COMP_WORDS[i]}}"
    case "$next" in
      {}) at="$next" ;;
    esac
  done
  case "$at" in
)",
                                 known_paths(program));
  text += bash_case(program, "");
  for_each_command(program, "", [&](const CommandText& command, const std::string& path) {
    text += bash_case(command, path);
  });
  return text + R"(  esac
  if [[ $is_value == 0 && $word == -* ]]; then words="$flags"; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _lockstep lockstep
)";
}

std::string zsh_completion(const CommandText& program) {
  std::string text = fmt::format(R"(#compdef lockstep
# Made by `lockstep completion zsh`.
_lockstep() {{
  local at='' next i
  local -a commands flags
  for ((i = 2; i < CURRENT; ++i)); do
    next="$at ${{words[i]}}"
    case "$next" in
      ({}) at="$next" ;;
    esac
  done
  case "$at" in
)",
                                 known_paths(program));
  text += zsh_case(program, "");
  for_each_command(program, "", [&](const CommandText& command, const std::string& path) {
    text += zsh_case(command, path);
  });
  return text + R"(  esac
  if [[ ${words[CURRENT]} == -* ]]; then
    _describe -o flag flags
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}
if [[ $funcstack[1] == _lockstep ]]; then _lockstep "$@"; else compdef _lockstep lockstep; fi
)";
}

std::string fish_completion(const CommandText& program) {
  std::string text = "# Made by `lockstep completion fish`.\n" + fish_lines(program, "");
  for_each_command(program, "", [&](const CommandText& command, const std::string& path) {
    text += fish_lines(command, path);
  });
  return text;
}

}  // namespace lockstep
