// `lockstep top`: the machines, models, requests, links and events of a cluster, live.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/client/wanted_model.h"
#include "cli/commands/commands.h"
#include "cli/flags/interrupt.h"
#include "cli/stream/node_call.h"
#include "cli/text/output.h"
#include "cli/top/top_feed.h"
#include "cli/top/top_frame.h"
#include "cli/top/top_screen.h"

namespace lockstep {
namespace {

using TopClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTopRedraw{500};
constexpr std::chrono::milliseconds kTopLook{50};
constexpr std::chrono::seconds kTopHeartbeat{30};
constexpr std::chrono::seconds kTopFirst{5};   // for the first facts
constexpr std::chrono::seconds kTopMeters{2};  // then for the first meters

struct TopFlags {
  NodeFlags node;
  bool once = false;
  bool json = false;
};

// The answer that the user waits for, and its form as lines.
struct TopWait {
  TopAction action;
  NodeCall call;
};

std::vector<std::string> lines_of_log(const Json& answer) {
  std::vector<std::string> lines;
  for (const Json& line : list_in(answer, "lines")) {
    Json as_event =
        JsonObject{{"at_ms", number_in(line, "at_ms")}, {"sentence", text_in(line, "text")}};
    lines.push_back(happening_line(as_event));
  }
  return lines;
}

std::vector<std::string> lines_of_doctor(const Json& answer) {
  std::vector<std::string> lines;
  for (const Json& finding : list_in(answer, "findings")) {
    const std::string severity = text_in(finding, "severity");
    if (severity == "ok") continue;
    lines.push_back(harmless_line(fmt::format("{}: {}", severity, text_in(finding, "sentence"))));
    const std::string mend = text_in(finding, "mend");
    if (!mend.empty()) lines.push_back(harmless_line("  " + mend));
  }
  if (lines.empty()) lines.emplace_back("Nothing is wrong.");
  return lines;
}

Result<NodeCall> call_of(const TopFlags& flags, const TopAction& action) {
  switch (action.kind) {
    case TopAction::Kind::kLoad: {
      const WantedModel wanted = TRY(wanted_model(action.model));
      const JsonObject body{{"model", wanted.name}, {"path", wanted.path}};
      return NodeCall(flags.node, post_call("/cluster/load", body));
    }
    case TopAction::Kind::kUnload:
      return NodeCall(flags.node,
                      post_call("/cluster/unload", JsonObject{{"model", action.model}}));
    case TopAction::Kind::kDoctor:
      return NodeCall(flags.node, HttpCall{.target = "/cluster/doctor"});
    default:
      return NodeCall(flags.node, HttpCall{.target = "/cluster/log?after=0"});
  }
}

void show_answer(const TopAction& action, const Result<Json>& answer, TopScreenState& screen) {
  if (!answer.ok()) return screen.tell(answer.error().message);
  if (action.kind == TopAction::Kind::kLog) {
    return screen.show_text("The log of the node", lines_of_log(answer.value()));
  }
  if (action.kind == TopAction::Kind::kDoctor) {
    return screen.show_text("The doctor", lines_of_doctor(answer.value()));
  }
  const bool is_load = action.kind == TopAction::Kind::kLoad;
  screen.tell(fmt::format("{} is {}.", action.model, is_load ? "wanted" : "unloaded"));
}

Status run_screen(const TopFlags& flags, TopFacts& facts, TopFeed& feed) {
  const TerminalManner manner = stdout_manner();
  TopScreen terminal;
  TopScreenState screen;
  std::optional<TopWait> wait;
  auto next_draw = TopClock::now();
  while (!terminal.is_ending()) {
    feed.take(kTopLook, facts);
    bool is_pressed = false;
    for (const TopKey& key : parse_top_keys(terminal.typed())) {
      is_pressed = true;
      TopAction action = screen.press(key, facts);
      if (action.kind == TopAction::Kind::kQuit) return Ok{};
      if (action.kind == TopAction::Kind::kNothing) continue;
      auto call = call_of(flags, action);
      if (!call.ok()) {
        screen.tell(call.error().message);
      } else {
        screen.tell("...");
        wait.emplace(TopWait{std::move(action), std::move(call.value())});
      }
    }
    if (auto answer = wait ? wait->call.poll() : std::nullopt) {
      show_answer(wait->action, *answer, screen);
      wait.reset();
      is_pressed = true;
    }
    const auto now = TopClock::now();
    // A key is answered at once; figures change at most twice a second. A new size is noticed then.
    if (!is_pressed && now < next_draw) continue;
    next_draw = now + kTopRedraw;
    terminal.draw(top_frame(facts, screen, manner, terminal.size()));
  }
  return Ok{};
}

Json facts_json(const TopFacts& facts) {
  const Json* requests = find(facts.requests, "requests");
  return JsonObject{{"status", facts.cluster.status()},
                    {"meters", facts.cluster.meters()},
                    {"requests", requests == nullptr ? Json(JsonArray()) : *requests}};
}

// Waits for the first status and, for a while, for the first meters.
Status await_first(TopFacts& facts, TopFeed& feed) {
  const auto began = TopClock::now();
  while (!facts.cluster.has_status()) {
    feed.take(kTopLook, facts);
    if (!facts.problem.empty() || TopClock::now() - began > kTopFirst) {
      return Error{ErrorCode::kPeerLost,
                   facts.problem.empty() ? "the node sends no events" : facts.problem};
    }
  }
  const auto seen = TopClock::now();
  while (TopClock::now() - seen < kTopMeters &&
         (facts.cluster.meters().get_object().empty() || facts.requests.get_object().empty())) {
    feed.take(kTopLook, facts);
  }
  return Ok{};
}

void print_top_lines(const TopFacts& facts) {
  for (const std::string& line : top_lines(facts, stdout_manner())) print_line(line);
}

// Nothing is repainted: a line for each event, and one from time to time.
Status run_lines(TopFacts& facts, TopFeed& feed) {
  const InterruptGuard guard;
  print_top_lines(facts);
  feed.on_happening([](const Json& happening) { print_line(happening_line(happening)); });
  auto last = TopClock::now();
  std::string problem;
  while (!InterruptGuard::is_interrupted()) {
    feed.take(kTopLook, facts);
    const auto now = TopClock::now();
    const bool is_news = facts.problem != problem && !facts.problem.empty();
    problem = facts.problem;
    if (is_news) print_line(problem);
    if (now - last < kTopHeartbeat) continue;
    last = now;
    print_line(top_summary(facts));
  }
  return Ok{};
}

Status run_json(TopFacts& facts, TopFeed& feed) {
  const InterruptGuard guard;
  constexpr std::chrono::seconds kJsonPeriod{1};
  auto next = TopClock::now();
  while (!InterruptGuard::is_interrupted()) {
    const auto now = TopClock::now();
    if (now >= next) {
      print_json(facts_json(facts));
      next = now + kJsonPeriod;
    }
    feed.take(kTopLook, facts);
  }
  return Ok{};
}

Status run_top(const TopFlags& flags) {
  TRY(ask_node(flags.node, "/cluster/status"));  // its refusal is one sentence
  TopFacts facts;
  facts.address = fmt::format("{}:{}", flags.node.host, flags.node.port);
  TopFeed feed(flags.node);
  TRY(await_first(facts, feed));
  if (flags.once) {
    flags.json ? print_json(facts_json(facts)) : print_top_lines(facts);
    return Ok{};
  }
  if (flags.json) return run_json(facts, feed);
  const TerminalManner manner = stdout_manner();
  if (!manner.may_repaint || isatty(STDIN_FILENO) == 0) return run_lines(facts, feed);
  return run_screen(flags, facts, feed);
}

}  // namespace

void add_top_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App* command =
      app.add_subcommand("top", "machines, models, requests, links and events of a cluster, live");
  add_node_flags(*command, flags->node);
  command->add_flag("--once", flags->once, "print them once");
  command->add_flag("--json", flags->json, "one JSON value a line, each second");
  choose_when_given(*command, chosen, flags, run_top);
}

}  // namespace lockstep
