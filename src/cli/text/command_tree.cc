#include "cli/text/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace lockstep {
namespace {

// "TEXT:{bash,zsh}" has the choices in braces.
std::vector<std::string> choices_in(std::string_view type) {
  std::vector<std::string> choices;
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == type.npos || end == type.npos || end < begin) return choices;
  std::string_view list = type.substr(begin + 1, end - begin - 1);
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    choices.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return choices;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

FlagText flag_text(const CLI::Option& option) {
  FlagText flag{
      .names = {}, .value = {}, .choices = {}, .about = one_line(option.get_description())};
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  const std::string type = option.get_type_name();
  flag.choices = choices_in(type);
  const bool takes_value = option.get_items_expected_max() > 0;
  if (flag.names.empty()) {
    flag.value = option.get_name(true);
  } else if (takes_value) {
    flag.value = type.substr(0, type.find_first_of(": "));
    if (flag.value.empty()) flag.value = "VALUE";
  }
  return flag;
}

}  // namespace

CommandText command_text(const CLI::App& app) {
  CommandText text{.name = app.get_name(),
                   .about = one_line(app.get_description()),
                   .flags = {},
                   .arguments = {},
                   .commands = {}};
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_group().empty()) continue;  // hidden
    FlagText flag = flag_text(*option);
    (flag.names.empty() ? text.arguments : text.flags).push_back(std::move(flag));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group().empty()) continue;  // hidden
    text.commands.push_back(command_text(*command));
  }
  return text;
}

}  // namespace lockstep
