// `lockstep completion`: what shells and man(1) read, made of the program's own commands.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/text/command_tree.h"
#include "cli/text/completion_text.h"
#include "cli/text/manual_text.h"
#include "hub/files/piece_store.h"

namespace lockstep {
namespace {

struct CompletionFlags {
  std::string kind;
  std::string file;
};

std::string completion_of(const std::string& kind, const CommandText& program) {
  if (kind == "bash") return bash_completion(program);
  if (kind == "zsh") return zsh_completion(program);
  if (kind == "fish") return fish_completion(program);
  return manual_page(program);
}

Status complete(const CompletionFlags& flags, const CLI::App& app) {
  const std::string text = completion_of(flags.kind, command_text(app));
  if (!flags.file.empty()) return write_file_atomically(flags.file, text);
  fmt::print("{}", text);
  return Ok{};
}

}  // namespace

void add_completion_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<CompletionFlags>();
  CLI::App* command = app.add_subcommand(
      "completion", "print the completion of commands and flags for a shell, or the manual page");
  command->add_option("SHELL", flags->kind, "bash, zsh or fish; man: the manual page")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  command->add_option("-o,--output", flags->file, "write it to this file")->type_name("FILE");
  command->footer(
      "\nbash: eval \"$(lockstep completion bash)\" in ~/.bashrc\n"
      "zsh:  eval \"$(lockstep completion zsh)\" in ~/.zshrc, after compinit\n"
      "fish: lockstep completion fish > ~/.config/fish/completions/lockstep.fish");
  command->callback([flags, &app, &chosen] {
    chosen = [flags, &app] { return exit_status(complete(*flags, app)); };
  });
}

}  // namespace lockstep
