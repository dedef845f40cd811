// `lockstep logs`: the last lines of a running node's log, and with -f those that follow.
#include <fmt/core.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <thread>

#include "cli/client/node_client.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kLogPollPeriod{500};
constexpr std::chrono::seconds kLogPatience{30};  // for a node that restarts

struct LogsFlags {
  NodeFlags node;
  bool follows = false;
  bool json = false;
};

std::string log_time_text(int64_t at_ms) {
  const std::time_t seconds = at_ms / 1000;
  std::tm here{};
  localtime_r(&seconds, &here);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", here.tm_year + 1900, here.tm_mon + 1,
                     here.tm_mday, here.tm_hour, here.tm_min, here.tm_sec);
}

void print_log_line(const Json& line, bool is_json) {
  if (is_json) return print_json(line);
  print_line(fmt::format("{} {:5} {}", log_time_text(number_in(line, "at_ms")),
                         text_in(line, "level"), text_in(line, "text")));
}

// Prints what follows `next`, which it moves on. True: there may be more at once.
Result<bool> print_log_page(const LogsFlags& flags, int64_t& next) {
  const Json page = TRY(ask_node(flags.node, fmt::format("/cluster/log?after={}", next)));
  const auto lines = list_in(page, "lines");
  for (const Json& line : lines) print_log_line(line, flags.json);
  next = number_in(page, "next");
  return !lines.empty();
}

Status show_log(const LogsFlags& flags) {
  using Clock = std::chrono::steady_clock;
  int64_t next = 0;
  auto answered_at = Clock::now();
  bool has_answered = false;
  for (;;) {
    const auto more = print_log_page(flags, next);
    const bool may_return = flags.follows && has_answered && !more.ok() &&
                            more.error().code == ErrorCode::kPeerLost &&
                            Clock::now() - answered_at < kLogPatience;
    if (!more.ok() && !may_return) return more.error();
    if (more.ok()) {
      answered_at = Clock::now();
      has_answered = true;
      if (more.value()) continue;
      if (!flags.follows) {
        if (next == 0 && !flags.json) fmt::print(stderr, "The node has not logged anything yet.\n");
        return Ok{};
      }
    }
    std::this_thread::sleep_for(kLogPollPeriod);
  }
}

}  // namespace

void add_logs_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<LogsFlags>();
  CLI::App* command = app.add_subcommand("logs", "the last lines of a running node's log");
  add_node_flags(*command, flags->node);
  command->add_flag("-f,--follow", flags->follows, "go on with the lines that follow");
  command->add_flag("--json", flags->json, "one JSON value a line");
  choose_when_given(*command, chosen, flags, show_log);
}

}  // namespace lockstep
