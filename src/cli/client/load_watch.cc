#include "cli/client/load_watch.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/client/cluster_text.h"
#include "cli/client/node_client.h"
#include "cli/client/served_model.h"

namespace lockstep {
namespace {

struct Groups {
  int64_t wanted = 1;
  int64_t ready = 0;
  bool is_any_coming = false;  // loading, or about to
};

// A node of an earlier version reports no groups: the ready one is the only one.
Groups groups_of(const Json& model) {
  Groups groups;
  const Json* wanted = find(model, "wanted");
  if (find(model, "groups") == nullptr) return {.ready = 1};
  if (wanted != nullptr) groups.wanted = std::max<int64_t>(1, number_in(*wanted, "replicas"));
  for (const Json& group : list_in(model, "groups")) {
    const std::string phase = text_in(group, "phase");
    groups.ready += phase == "ready" ? 1 : 0;
    groups.is_any_coming |= phase == "placing" || phase == "loading";
  }
  return groups;
}

}  // namespace

LoadWatch::Said LoadWatch::look(const Json& status, Clock::time_point now) {
  const Json* model = model_named(status, name_);
  if (model == nullptr) return {State::kGone, "another client unloaded " + name_};
  const std::string phase = text_in(*model, "phase");
  const std::string sentence = text_in(*model, "sentence");
  const Groups groups = groups_of(*model);
  if (phase == "ready" && groups.ready >= groups.wanted) return {State::kReady, placed_on(*model)};
  const std::string stands =
      groups.wanted == 1
          ? phase
          : fmt::format("{} of {} groups ready", std::max<int64_t>(0, groups.ready), groups.wanted);
  const std::string loading = loading_text(*model);
  const std::string& about = loading.empty() ? sentence : loading;
  const std::string progress = stands + (about.empty() ? "" : ": " + about);
  if ((phase != "waiting" && phase != "ready") || groups.is_any_coming || sentence.empty()) {
    waits_since_.reset();
    return {State::kWaiting, progress};
  }
  if (!waits_since_) waits_since_ = now;
  if (now - *waits_since_ < kPatience) return {State::kWaiting, progress};
  return {phase == "ready" ? State::kPartial : State::kRefused, sentence};
}

}  // namespace lockstep
