// Some Brains on a perfect network, for tests of what they decide.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/brain/brain.h"
#include "support/numbered_node.h"

namespace lockstep::testing {

// Parts become ready and stop at once unless a test says otherwise.
class Cluster {
 public:
  void add(int number, int64_t budget_bytes, bool is_spare = false) {
    BrainOptions options;
    options.self = node(number);
    options.incarnation = ++lives_;
    options.name = "machine-" + std::to_string(number);
    options.budget_bytes = budget_bytes;
    options.is_spare = is_spare;
    const auto plan = [](const DesiredEntry& entry, size_t groups,
                         std::span<const NodeOffer> offers) {
      return split_groups(entry, groups, std::stoll(entry.path), offers);
    };
    brains_[number] =
        std::make_unique<Brain>(options, disks_[number], plan, ClusterTime{now_ms_, 1'000});
    for (const auto& [other, brain] : brains_) {
      if (other == number) continue;
      act(number, brains_[number]->on_peer_connected(now(), node(other)));
      act(other, brain->on_peer_connected(now(), node(number)));
    }
  }
  // The delayed answer to a request that was not answered at once.
  std::optional<Status> answer() { return std::exchange(answer_, std::nullopt); }
  void kill(int number) { brains_.erase(number); }
  void lose_disk(int number) { disks_.erase(number); }
  Brain& at(int number) { return *brains_.at(number); }

  void pass(int64_t ms) {
    for (const int64_t end_ms = now_ms_ + ms; now_ms_ < end_ms;) {
      now_ms_ += kTickMs;
      for (auto& [number, brain] : brains_) act(number, brain->on_tick(now()));
    }
  }
  std::optional<Status> load(int number, const std::string& name, int64_t bytes,
                             ModelPromises promises = {}) {
    DesiredEntry entry;
    entry.name = name;
    entry.path = std::to_string(bytes);
    entry.promises = std::move(promises);
    act(number, at(number).load(now(), ++request_, entry));
    return std::exchange(answer_, std::nullopt);
  }
  std::optional<Status> unload(int number, const std::string& name) {
    act(number, at(number).unload(now(), ++request_, name));
    return std::exchange(answer_, std::nullopt);
  }
  // The answer of the node that was asked; the nodes that restart are left in restarted().
  std::optional<Status> restart(int asked, int number) {
    act(asked, at(asked).restart(now(), ++request_, node(number)));
    return std::exchange(answer_, std::nullopt);
  }
  std::vector<int> restarted() { return std::exchange(restarted_, {}); }
  void leave(int number) { act(number, at(number).leave(now())); }
  void keep(int number, const std::string& name, int64_t keep_ms) {
    act(number, at(number).on_model_kept(now(), name, keep_ms));
  }
  int64_t idle_left_ms(int number, const std::string& name) {
    return at(number).idle_left_ms(now(), *at(number).desired().find(name));
  }
  // All parts of a model fail.
  void fail_parts(const std::string& name) {
    for (const auto& [number, brain] : brains_) {
      const auto reports = brain->parts().reports();
      for (const PlacementShare& part : reports) {
        if (part.model != name) continue;
        act(number, brain->on_part_event(now(), name, part.epoch,
                                         {PartEvent::Kind::kFailed, "a machine stalled"}));
      }
    }
  }
  void use(int number, const std::string& name) {
    act(number, at(number).on_model_used(now(), name));
  }
  // The nodes where a model is ready; a node that has it twice is listed twice.
  std::vector<int> where(const std::string& model) {
    std::vector<int> found;
    for (const auto& [number, brain] : brains_) {
      for (const PlacementShare& part : brain->parts().reports()) {
        if (part.model == model && part.state == PartState::kReady) found.push_back(number);
      }
    }
    return found;
  }
  // How often node `number` shows this phase of a model, as the coordinator reported it.
  int count(int number, const std::string& model, ModelPhase phase) {
    int found = 0;
    for (const ModelProgress& one : at(number).progress()) {
      found += one.model == model && one.phase == phase ? 1 : 0;
    }
    return found;
  }
  ModelProgress progress(int number, const std::string& model) {
    for (const ModelProgress& one : at(number).progress()) {
      if (one.model == model) return one;
    }
    return {};
  }

  bool disks_refuse_ = false;
  bool is_cut_ = false;  // no message arrives
  bool fails_ = false;   // parts that are started fail
  std::string failing_;  // likewise, those of this model
  int starts_ = 0;

 private:
  ClusterTime now() const { return {now_ms_, 1'000'000 + now_ms_}; }

  void act(int number, ClusterActions actions) {
    for (const ClusterAction& action : actions) {
      if (!brains_.contains(number)) return;
      Brain& brain = at(number);
      if (const auto* send = std::get_if<SendAction>(&action)) {
        for (const auto& [other, peer] : brains_) {
          if (is_cut_ || node(other) != send->to) continue;
          act(other, peer->on_message(now(), node(number), send->message));
          break;
        }
      } else if (const auto* start = std::get_if<StartPartAction>(&action)) {
        ++starts_;
        const bool fails = fails_ || start->part.model == failing_;
        const auto kind = fails ? PartEvent::Kind::kFailed : PartEvent::Kind::kReady;
        act(number, brain.on_part_event(now(), start->part.model, start->part.epoch,
                                        {kind, "no such file"}));
      } else if (const auto* stop = std::get_if<StopPartAction>(&action)) {
        act(number,
            brain.on_part_event(now(), stop->model, stop->epoch, {PartEvent::Kind::kStopped, ""}));
      } else if (const auto* persist = std::get_if<PersistAction>(&action)) {
        const Status full = Error{ErrorCode::kInternal, "the disk is full"};
        if (!disks_refuse_) disks_[number] = *persist->state;
        act(number, brain.on_persisted(now(), persist->revision, disks_refuse_ ? full : Ok{}));
      } else if (const auto* answer = std::get_if<AnswerAction>(&action)) {
        answer_ = answer->status;
      } else if (std::holds_alternative<RestartAction>(action)) {
        restarted_.push_back(number);
      }
    }
  }

  int64_t now_ms_ = 10'000;
  int64_t lives_ = 0;
  int64_t request_ = 0;
  std::optional<Status> answer_;
  std::vector<int> restarted_;
  std::map<int, std::unique_ptr<Brain>> brains_;
  std::map<int, DesiredState> disks_;
};

}  // namespace lockstep::testing
