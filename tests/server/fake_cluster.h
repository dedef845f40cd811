// A cluster for tests of the server: two nodes, one model that is ready on both, one that waits,
// and a machine that asks to join. It records the server's requests.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "node/cluster/cluster_control.h"

namespace lockstep {

inline NodeId fake_node_id(char digit) {
  return NodeId::parse(std::string(2 * NodeId::kBytes, digit)).value();
}

class FakeCluster : public ClusterControl {
 public:
  FakeCluster() {
    report_.cluster = "12345678";
    report_.nodes.push_back({.id = fake_node_id('a'),
                             .name = "alpha",
                             .version = "0.1.0",
                             .state = "alive",
                             .is_self = true,
                             .is_coordinator = true,
                             .budget_bytes = 1000,
                             .promised_bytes = 400,
                             .read_bytes_s = 50,
                             .life = "00000000000000a1",
                             .clock_ahead_s = 0,
                             .power_w = 12.5});
    report_.nodes.push_back({.id = fake_node_id('b'),
                             .name = "beta",
                             .address = "10.0.0.2:8601",
                             .state = "suspect",
                             .note = "silent for 2 s",
                             .data_addresses = {{"10.9.0.2", 24}, {"fd00:9::2", 64}},
                             .life = "00000000000000b1",
                             .clock_ahead_s = -2.5});
    ClusterModelReport ready;
    ready.entry.name = "org/Tiny-Model";
    ready.entry.path = "/models/Tiny-Model";
    ready.entry.wanted = true;
    ready.entry.promises.aliases = {"small"};
    ready.entry.promises.pinned = {fake_node_id('b')};
    ready.phase = ModelPhase::kReady;
    ready.groups = {
        {.phase = ModelPhase::kReady,
         .epoch = {},
         .plan = {{{fake_node_id('b'), 300}, {fake_node_id('c'), 100}}, 1}},
        {.phase = ModelPhase::kLoading, .epoch = {}, .plan = {{{fake_node_id('d'), 200}}, 1}}};
    report_.models.push_back(ready);
    ClusterModelReport waiting;
    waiting.entry.name = "Large-Model";
    waiting.entry.path = "org/Large-Model";
    waiting.entry.wanted = true;
    waiting.sentence = "it needs 142 GiB but the 2 nodes have 96 GiB free";
    report_.models.push_back(waiting);
    report_.pins.push_back({"gamma", "10.0.0.3", "12345678"});
    report_.strangers_refused = 5;
  }

  // Only before the server starts.
  ClusterReport& report_to_change() { return report_; }
  // At any time.
  void change_report(const std::function<void(ClusterReport&)>& change) {
    const std::lock_guard lock(mutex_);
    change(report_);
  }
  // From now on report() waits until release_reports().
  void hold_reports() {
    const std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void release_reports() {
    const std::lock_guard lock(mutex_);
    is_held_ = false;
    released_.notify_all();
  }
  int report_count() const {
    const std::lock_guard lock(mutex_);
    return report_count_;
  }
  void refuses(Error error) {
    std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }
  std::vector<DesiredEntry> loaded() {
    std::lock_guard lock(mutex_);
    return loaded_;
  }
  std::vector<std::string> unloaded() {
    std::lock_guard lock(mutex_);
    return unloaded_;
  }

  std::vector<NodeId> restarted() {
    std::lock_guard lock(mutex_);
    return restarted_;
  }

  ClusterReport report() const override {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [this] { return !is_held_; });
    ++report_count_;
    return report_;
  }
  Status load(DesiredEntry entry) override {
    std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    loaded_.push_back(std::move(entry));
    return Ok{};
  }
  Status unload(std::string_view name) override {
    std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    unloaded_.emplace_back(name);
    return Ok{};
  }
  Status restart(const NodeId& node) override {
    std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    restarted_.push_back(node);
    return Ok{};
  }
  Result<std::string> make_join_token() override {
    std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    return std::string("a-token");
  }

 private:
  ClusterReport report_;
  mutable std::mutex mutex_;
  mutable std::condition_variable released_;
  mutable int report_count_ = 0;
  bool is_held_ = false;
  std::optional<Error> refusal_;
  std::vector<DesiredEntry> loaded_;
  std::vector<std::string> unloaded_;
  std::vector<NodeId> restarted_;
};

}  // namespace lockstep
