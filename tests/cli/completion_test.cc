// Completions and the manual page, which are made of the tree of commands.
#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/text/command_tree.h"
#include "cli/text/completion_text.h"
#include "cli/text/manual_text.h"

using namespace lockstep;

namespace {

// A program with what a command may have.
struct SmallProgram {
  CLI::App app{"a small program", "lockstep"};
  std::string shape, kind, hidden;
  int port = 0;
  bool json = false;

  SmallProgram() {
    CLI::App* bench = app.add_subcommand("bench", "it's measured");
    bench->add_option("MODEL", shape, "what to measure");
    bench->add_flag("-j,--json", json, "one JSON value");
    bench->add_option("--hidden", hidden, "for tests")->group("");
    CLI::App* serve = bench->add_subcommand("serve", "a server under load");
    serve->add_option("--port", port, "its port");
    serve->add_option("--api", kind, "which API")->check(CLI::IsMember({"chat", "plain"}));
    app.add_subcommand("secret", "not shown")->group("");
  }
};

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the tree of commands has names, values, choices and what is not hidden") {
  SmallProgram program;
  const CommandText tree = command_text(program.app);
  CHECK(tree.name == "lockstep");
  REQUIRE(tree.commands.size() == 1);
  const CommandText& bench = tree.commands[0];
  CHECK(bench.about == "it's measured");
  REQUIRE(bench.arguments.size() == 1);
  CHECK(bench.arguments[0].value == "MODEL");
  REQUIRE(bench.flags.size() == 2);  // and --help
  CHECK(bench.flags[1].names == std::vector<std::string>{"--json", "-j"});
  CHECK(bench.flags[1].value.empty());
  REQUIRE(bench.commands.size() == 1);
  const CommandText& serve = bench.commands[0];
  REQUIRE(serve.flags.size() == 3);
  CHECK(serve.flags[1].value == "INT");
  CHECK(serve.flags[2].choices == std::vector<std::string>{"chat", "plain"});
}

TEST_CASE("each shell's completion has every command and flag, quoted, and nothing hidden") {
  SmallProgram program;
  const CommandText tree = command_text(program.app);
  const std::string bash = bash_completion(tree);
  CHECK(has_text(bash, "    '') words='bench' flags="));
  CHECK(has_text(bash, "    ' bench') words='serve' flags='--help -h --json -j'"));
  CHECK(has_text(bash, "        --api) is_value=1 words='chat plain' ;;"));
  CHECK(has_text(bash, "' bench'|' bench serve') at="));
  const std::string zsh = zsh_completion(tree);
  CHECK(has_text(zsh, "commands=( 'bench:it'\\''s measured' )"));
  CHECK(has_text(zsh, "'--port:its port'"));
  const std::string fish = fish_completion(tree);
  CHECK(has_text(fish, "complete -c lockstep -n '__fish_use_subcommand' -f -a bench -d 'it'\\''s"));
  CHECK(has_text(fish,
                 "-n '__fish_seen_subcommand_from bench; and not "
                 "__fish_seen_subcommand_from serve' -l json -s j -d 'one JSON value'"));
  CHECK(has_text(fish, "-l api -x -a 'chat plain' -d 'which API'"));
  for (const std::string& text : {bash, zsh, fish, manual_page(tree)}) {
    CHECK(!has_text(text, "hidden"));
    CHECK(!has_text(text, "secret "));
  }
}

TEST_CASE("the manual has each command with its flags between the parts that are written by hand") {
  SmallProgram program;
  const std::string page = manual_page(command_text(program.app));
  CHECK(page.starts_with(".TH LOCKSTEP 1\n"));
  CHECK(has_text(page, ".SS \\fBlockstep bench\\fR \\fIMODEL\\fR\nit's measured.\n"));
  CHECK(has_text(page, ".SS \\fBlockstep bench serve\\fR\n"));
  CHECK(has_text(page, ".TP\n\\fB\\-\\-port\\fR \\fIINT\\fR\nits port\n"));
  CHECK(has_text(page, ".SH FILES\n"));
  CHECK(has_text(page, ".SH EXIT STATUS\n"));
  CHECK(page.find(".SH COMMANDS") < page.find(".SH FILES"));
}
