// Faults of the simulated machines and network, and the users' requests.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "cluster/simulation_run.h"

namespace lockstep {
namespace {

constexpr int64_t kModels = 7;
constexpr int64_t kDayMs = 86'400'000;

}  // namespace

void SimulationRun::wild() {
  say("wild times");
  is_wild_ = true;
  at(random_.between(100, 5'000), -1, [this] { weather(); });
}

void SimulationRun::calm() {
  say("calm");
  is_wild_ = false;
  heal();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    SimulatedNode& node = nodes_[i];
    node.disk_refuses = false;
    node.disk_ms = 5;
    if (node.has_joined && !node.has_left && !node.is_up()) start(static_cast<int>(i));
  }
}

void SimulationRun::heal() {
  loss_ = 0;
  twice_ = 0;
  delay_max_ms_ = 5;
  for (auto& row : cut_) std::fill(row.begin(), row.end(), 0);
}

void SimulationRun::weather() {
  if (!is_wild_) return;
  at(random_.between(200, 9'000), -1, [this] { weather(); });
  const int64_t kind = random_.between(0, 99);
  if (kind < 22) {
    load_something();
  } else if (kind < 30) {
    unload_something();
  } else if (kind < 38) {
    use_something();
  } else if (kind < 70) {
    machine_weather(kind - 38);
  } else if (kind < 90) {
    network_weather(kind - 70);
  } else {
    disk_weather(kind - 90);
  }
}

void SimulationRun::machine_weather(int64_t kind) {
  if (kind < 14) {  // restart
    const int down = any_node(false);
    if (down >= 0) start(down);
    return;
  }
  if (kind == 14) return join();
  if (kind == 15 && random_.chance(0.3)) return leave();
  if (kind == 16 && random_.chance(0.3)) {
    say("power cut");
    for (size_t i = 0; i < nodes_.size(); ++i) crash(static_cast<int>(i), false);
    return;
  }
  const int up = any_node(true);
  if (up < 0) return;
  SimulatedNode& node = nodes_[static_cast<size_t>(up)];
  if (kind < 23) {
    crash(up, kind > 20);
  } else if (kind < 28) {
    node.paused_until_ms = clock_ms_ + random_.between(100, 6'000);
    say(fmt::format("node {} is paused", node.id.short_text()));
  } else if (!node.running.empty()) {
    auto part = node.running.begin();
    std::advance(part, random_.between(0, static_cast<int64_t>(node.running.size()) - 1));
    const auto key = part->first;
    at(0, up, [this, up, key] {
      end_part(up, key.first, key.second, {PartEvent::Kind::kFailed, "it was killed"});
    });
  }
}

void SimulationRun::network_weather(int64_t kind) {
  const auto last = static_cast<int64_t>(nodes_.size()) - 1;
  if (kind < 6) {
    heal();
    say("the network heals");
  } else if (kind < 11) {
    const uint64_t side = random_.next();
    for (size_t a = 0; a < nodes_.size(); ++a) {
      for (size_t b = 0; b < nodes_.size(); ++b) cut_[a][b] = ((side >> a ^ side >> b) & 1) != 0;
    }
    say(fmt::format("a partition: {:#x}", side & 0x7f));
  } else if (kind < 16) {
    const auto a = static_cast<size_t>(random_.between(0, last));
    const auto b = static_cast<size_t>(random_.between(0, last));
    cut_[a][b] = 1;
    if (random_.chance(0.5)) cut_[b][a] = 1;
    say(fmt::format("nothing goes from {} to {}", nodes_[a].id.short_text(),
                    nodes_[b].id.short_text()));
  } else if (kind < 18) {
    loss_ = random_.chance(0.5) ? 0.02 : 0.3;
    twice_ = 0.1;
    say(fmt::format("messages are lost: {}", loss_));
  } else {
    delay_max_ms_ = random_.between(10, 2'500);
    say(fmt::format("messages take up to {} ms", delay_max_ms_));
  }
}

void SimulationRun::disk_weather(int64_t kind) {
  const int up = any_node(true);
  if (up < 0) return;
  SimulatedNode& node = nodes_[static_cast<size_t>(up)];
  if (kind < 3) {
    node.disk_ms = random_.between(100, 8'000);
  } else if (kind < 5) {
    node.disk_refuses = true;
  } else if (kind < 8) {
    node.disk_refuses = false;
    node.disk_ms = 5;
  } else {
    node.wall_offset_ms += random_.between(-kDayMs, kDayMs);
    say(fmt::format("the clock of node {} jumps", node.id.short_text()));
  }
}

void SimulationRun::join() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].has_joined) continue;
    nodes_[i].has_joined = true;
    return start(static_cast<int>(i));
  }
}

void SimulationRun::leave() {
  const auto there = std::count_if(nodes_.begin(), nodes_.end(), [](const SimulatedNode& node) {
    return node.has_joined && !node.has_left;
  });
  const int up = any_node(true);
  if (there < 3 || up < 0) return;
  say(fmt::format("node {} leaves for good", nodes_[static_cast<size_t>(up)].id.short_text()));
  crash(up, false);
  nodes_[static_cast<size_t>(up)].has_left = true;
}

int SimulationRun::any_node(bool is_up) {
  std::vector<int> found;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const bool is_one = nodes_[i].has_joined && !nodes_[i].has_left;
    if (is_one && nodes_[i].is_up() == is_up) found.push_back(static_cast<int>(i));
  }
  if (found.empty()) return -1;
  return found[static_cast<size_t>(random_.between(0, static_cast<int64_t>(found.size()) - 1))];
}

std::string SimulationRun::any_model() {
  return fmt::format("model-{}", random_.between(1, kModels));
}

void SimulationRun::load_something() {
  const int index = any_node(true);
  if (index < 0) return;
  SimulatedNode& node = nodes_[static_cast<size_t>(index)];
  DesiredEntry entry;
  entry.name = any_model();
  entry.path = std::to_string(random_.between(1, random_.chance(0.2) ? 400 : 80) * kGib + 12345);
  entry.promises.parallel = random_.chance(0.3) ? random_.between(1, 3) : 0;
  if (random_.chance(0.3)) entry.promises.idle_unload_s = random_.between(5, 60);
  if (random_.chance(0.1)) entry.promises.pinned = {node.id};
  if (random_.chance(0.3)) entry.promises.replicas = random_.between(2, 4);
  const int64_t request = next_request_++;
  const std::string name = entry.name;
  say(fmt::format("a user loads {} of {} bytes at node {}", name, entry.path,
                  node.id.short_text()));
  requests_[request] = {name, {}};
  at(0, index, [this, index, request, entry] {
    SimulatedNode& asked = nodes_[static_cast<size_t>(index)];
    auto actions = asked.brain->load(now(asked), request, entry);
    const DesiredEntry* held = asked.brain->asked().find(entry.name);
    if (held != nullptr) requests_[request].second = held->stamp;
    act(index, std::move(actions));
  });
}

void SimulationRun::unload_something() {
  const int index = any_node(true);
  if (index < 0) return;
  const int64_t request = next_request_++;
  const std::string name = any_model();
  say(fmt::format("a user unloads {} at node {}", name,
                  nodes_[static_cast<size_t>(index)].id.short_text()));
  requests_[request] = {name, {}};
  at(0, index, [this, index, request, name] {
    SimulatedNode& asked = nodes_[static_cast<size_t>(index)];
    auto actions = asked.brain->unload(now(asked), request, name);
    const DesiredEntry* held = asked.brain->asked().find(name);
    if (held != nullptr) requests_[request].second = held->stamp;
    act(index, std::move(actions));
  });
}

void SimulationRun::use_something() {
  const int index = any_node(true);
  if (index < 0) return;
  at(0, index, [this, index, name = any_model()] {
    SimulatedNode& asked = nodes_[static_cast<size_t>(index)];
    act(index, asked.brain->on_model_used(now(asked), name));
  });
}

}  // namespace lockstep
