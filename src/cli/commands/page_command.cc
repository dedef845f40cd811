// `lockstep page`: the address of a node's control page, for a browser on the node's machine.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "cli/client/node_client.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

struct PageFlags {
  NodeFlags node;
  bool json = false;
};

Status page(const PageFlags& flags) {
  const Json answer = TRY(tell_node(flags.node, "/control/page", JsonObject()));
  const std::string url =
      fmt::format("http://{}:{}{}", flags.node.host, flags.node.port, text_in(answer, "path"));
  const int64_t expires_s = number_in(answer, "expires_s");
  if (flags.json) {
    print_json(JsonObject{{"url", url}, {"expires_s", expires_s}});
    return Ok{};
  }
  print_line(url);
  if (stderr_is_terminal()) {
    fmt::print(stderr, "It opens the page in one browser, once, within {} minutes.\n",
               expires_s / 60);
  }
  return Ok{};
}

}  // namespace

void add_page_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PageFlags>();
  CLI::App* command = app.add_subcommand(
      "page", "print an address that opens the page with control of the node, once");
  add_node_flags(*command, flags->node);
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, page);
}

}  // namespace lockstep
