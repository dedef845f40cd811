#include <fmt/core.h>

#include <filesystem>

#include "cli/client/load_watch.h"
#include "cli/client/served_model.h"
#include "cli/client/wanted_model.h"
#include "cli/flags/interrupt.h"
#include "cli/talk/node_answerer.h"
#include "cli/text/wait_line.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kOpenLook{100};

// The full path of a file or folder of this machine, else the text.
std::string source_of(const std::string& text) {
  std::error_code error;
  if (!std::filesystem::exists(text, error)) return "";
  const auto whole = std::filesystem::absolute(text, error).lexically_normal();
  return error ? "" : whole.string();
}

// Asks the cluster to load it, and returns its name.
Result<std::string> order_model(const NodeFlags& flags, const Json& status, const std::string& text,
                                const TerminalManner& manner) {
  if (can_load_nothing(status)) {
    std::string served;
    for (const Json& model : list_in(status, "models")) {
      served += (served.empty() ? "" : ", ") + harmless_line(text_in(model, "name"));
    }
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the node serves only {}, since it was started with --alone",
                             served.empty() ? "no model" : served)};
  }
  const WantedModel wanted = TRY(wanted_model(text));
  TRY(tell_node(flags, "/cluster/load", JsonObject{{"model", wanted.name}, {"path", wanted.path}}));
  print_dim(manner, fmt::format("{} stays loaded; `lockstep unload {}` frees its memory",
                                wanted.name, wanted.name));
  return wanted.name;
}

// The state of a model that is awaited; the error if it will not come.
Result<bool> can_answer(const Json& status, const std::string& name, LoadWatch& watch,
                        LoadWatch::Clock::time_point now) {
  const Json* model = model_named(status, name);
  if (model == nullptr) return Error{ErrorCode::kCancelled, name + " was unloaded"};
  if (is_model_on_demand(*model)) return true;
  if (find(*model, "phase") == nullptr) return false;  // of a node in no cluster
  const LoadWatch::Said said = watch.look(status, now);
  if (said.state == LoadWatch::State::kRefused) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} is not loaded: {}", name, harmless_line(said.text))};
  }
  return said.state == LoadWatch::State::kReady || said.state == LoadWatch::State::kPartial;
}

// Follows the node's events until the model can answer; returns its object of the status.
Result<Json> await_model(const NodeFlags& flags, const std::string& name,
                         const TerminalManner& manner) {
  const InterruptGuard guard;
  NodeStream stream(flags, {.target = "/cluster/events"});
  EventReader reader;
  ClusterState state;
  LoadWatch watch(name);
  WaitLine progress(manner);
  bool was_wanted = false;  // a new wish takes a moment to be in the status
  const auto began = LoadWatch::Clock::now();
  while (true) {
    const NodeStream::Step step = stream.next(kOpenLook);
    const auto now = LoadWatch::Clock::now();
    if (InterruptGuard::is_interrupted()) {
      return Error{ErrorCode::kCancelled, name + " goes on loading; `lockstep status` shows it"};
    }
    if (step.kind == NodeStream::Kind::kFailure) return *step.error;
    if (step.kind == NodeStream::Kind::kEnd) {
      return Error{ErrorCode::kPeerLost, "the node stopped while the model was loading"};
    }
    for (const ServerEvent& event : TRY(reader.take(step.piece))) {
      static_cast<void>(TRY(state.take(event)));
    }
    if (!state.has_status()) continue;
    const Json* model = model_named(state.status(), name);
    was_wanted = was_wanted || model != nullptr;
    constexpr std::chrono::seconds kAppears{10};
    if (!was_wanted && now - began < kAppears) continue;
    if (TRY(can_answer(state.status(), name, watch, now))) return *model;
    progress.show(fmt::format("{}: {}", harmless_line(name), model_progress(*model)), now);
  }
}

}  // namespace

bool can_load_nothing(const Json& status) {
  return text_in(status, "cluster").empty();
}

bool serves_model(const Json& status, const std::string& text) {
  return find_served_model(status, text, source_of(text)) != nullptr;
}

Result<NodeModel> open_node_model(const NodeFlags& flags, const Json& status,
                                  const std::string& text, const TerminalManner& manner) {
  const Json* served = find_served_model(status, text, source_of(text));
  const std::string name =
      served != nullptr ? text_in(*served, "name") : TRY(order_model(flags, status, text, manner));
  const bool answers_now = served != nullptr && is_model_on_demand(*served);
  const Json model = answers_now ? *served : TRY(await_model(flags, name, manner));
  NodeModel opened{.name = name, .context = number_in(model, "context"), .has_template = true};
  const auto card = tell_node(flags, "/api/show", JsonObject{{"model", name}});
  // A node that does not tell answers chats in any case.
  if (card.ok()) opened.has_template = !text_in(card.value(), "template").empty();
  if (card.ok() && opened.context == 0) {
    const Json* info = find(card.value(), "model_info");
    const std::string family = info == nullptr ? "" : text_in(*info, "general.architecture");
    if (!family.empty()) opened.context = number_in(*info, family + ".context_length");
  }
  return opened;
}

}  // namespace lockstep
