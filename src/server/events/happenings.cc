#include "server/events/happenings.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

double seconds_between(Happenings::Time from, Happenings::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

// " (because)", if it is known.
std::string because(const std::string& why) {
  return why.empty() ? "" : ": " + why;
}

}  // namespace

void Happenings::add(std::string kind, std::string sentence) {
  if (has_looked_) found_.push_back({std::move(kind), std::move(sentence)});
}

std::vector<Happening> Happenings::look(const ClusterReport& report,
                                        const std::vector<ModelStatus>& models, Time now) {
  found_.clear();
  look_at_nodes(report);
  look_at_models(report, models, now);
  has_looked_ = true;
  return std::exchange(found_, {});
}

// A silent node is not lost yet: it keeps the state that it had.
void Happenings::look_at_nodes(const ClusterReport& report) {
  Nodes nodes;
  for (const ClusterNodeReport& node : report.nodes) {
    const auto before = nodes_.find(node.id);
    const bool is_known = before != nodes_.end();
    Node now = is_known ? before->second : Node{};
    if (!node.name.empty() || !is_known) {
      now.name = node.name.empty() ? node.id.short_text() : node.name;
    }
    if (node.state != "suspect") now.is_alive = node.state == "alive";
    if (now.is_alive && !(is_known && before->second.is_alive)) {
      const bool is_back = now.was_there;
      add(is_back ? "node_back" : "joined", now.name + (is_back ? " is back" : " has joined"));
    } else if (!now.is_alive && is_known && before->second.is_alive) {
      add("node_lost", fmt::format("{} is lost{}", now.name, because(node.note)));
    }
    // A node that has just connected is silent until its first heartbeat.
    now.was_there = now.was_there || node.state != "suspect" || !has_looked_;
    nodes.emplace(node.id, std::move(now));
  }
  for (const auto& [id, node] : nodes_) {
    if (!nodes.contains(id) && node.is_alive) {
      add("node_lost", fmt::format("{} is lost", node.name));
    }
  }
  nodes_ = std::move(nodes);
}

void Happenings::look_at_models(const ClusterReport& report, const std::vector<ModelStatus>& models,
                                Time now) {
  Models seen;
  for (const ModelStatus& status : models) {
    Model& model = seen[status.name];
    model.is_ready = status.state == ModelStatus::State::kReady;
    model.has_failed = status.state == ModelStatus::State::kFailed;
    model.restarts = status.restarts;
    model.last_error = status.last_error;
  }
  for (const ClusterModelReport& placed : report.models) {
    const auto [found, is_new] = seen.try_emplace(placed.entry.name);
    if (is_new) found->second.is_ready = placed.phase == ModelPhase::kReady;
    if (!found->second.is_ready) found->second.sentence = placed.sentence;
  }
  for (auto& [name, model] : seen) {
    const auto before = models_.find(name);
    if (before == models_.end()) add("load", fmt::format("{} is being loaded", name));
    compare(name, before == models_.end() ? Model{} : before->second, model, now);
  }
  for (const auto& [name, model] : models_) {
    if (!seen.contains(name)) add("unload", fmt::format("{} is unloaded", name));
  }
  models_ = std::move(seen);
}

void Happenings::compare(const std::string& name, const Model& before, Model& after, Time now) {
  after.was_ready = before.was_ready || after.is_ready;
  after.paused_at = before.paused_at;
  if (before.is_ready && !after.is_ready) after.paused_at = now;
  const std::string why = because(after.sentence.empty() ? after.last_error : after.sentence);
  if (after.has_failed) {
    if (!before.has_failed) add("failed", fmt::format("{} has failed{}", name, why));
  } else if (after.is_ready && !before.is_ready) {
    if (after.paused_at) {
      const double took_s = seconds_between(*after.paused_at, now);
      add("healed", fmt::format("{} serves again after {:.1f} s", name, took_s));
    } else {
      add("ready", fmt::format("{} is ready", name));
    }
    after.paused_at.reset();
  } else if (after.is_ready && after.restarts > before.restarts && before.was_ready) {
    // It was shorter than the time between two looks.
    add("healed", fmt::format("{} was formed again{}", name, because(after.last_error)));
  } else if (before.is_ready && !after.is_ready) {
    add("paused", fmt::format("{} waits{}", name, why));
  } else if (!after.is_ready && !after.sentence.empty() && before.sentence.empty()) {
    add("waits", fmt::format("{} waits{}", name, because(after.sentence)));
  }
}

}  // namespace lockstep
