// SharedFetch: the state of one fetch of a model by this node: the pieces it is getting from the
// hub, and what other nodes have reported of the model. Shared by the fetch's threads; piece_host.h
// answers other nodes from it. Machine numbers are derived from node ids (machine_of()), so that
// all nodes agree on them whichever are connected. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/node_id.h"
#include "hub/files/model_files.h"
#include "hub/files/piece_store.h"
#include "node/fetch/piece_frames.h"

namespace lockstep {

// 31 bits of the id.
int machine_of(const NodeId& node);

class SharedFetch {
 public:
  using Clock = std::chrono::steady_clock;
  struct Times {
    std::chrono::milliseconds refresh{250};         // how often the others are asked
    std::chrono::milliseconds retry{1'000};         // pause after a node could not be asked
    std::chrono::milliseconds stuck_after{30'000};  // without a byte from the hub
    std::chrono::milliseconds hub_pause{30'000};    // after the hub could not be reached
  };

  SharedFetch(const NodeId& self, std::string model, Times times)
      : self_(self), model_(std::move(model)), times_(times) {}

  const NodeId& self() const { return self_; }
  const std::string& model() const { return model_; }

  // Once, when files and destination are known.
  void use_files(ModelFiles files, std::shared_ptr<PieceStore> store);
  std::shared_ptr<const ModelFiles> files() const;
  std::shared_ptr<PieceStore> store() const;
  std::string commit() const;  // empty: not known yet
  FetchStatus own_status() const;

  // Whether this node gets pieces from the hub. A transient failure counts for a while.
  void allow_hub();
  void note_hub_failure(const Error& error);
  bool uses_hub() const;
  std::optional<Error> hub_error() const;
  std::atomic<uint64_t> received{0};    // bytes from the hub; only a count: relaxed
  std::atomic<uint64_t> from_nodes{0};  // bytes from other nodes; the same

  // The state of one of this node's pieces, for answers to others.
  void set_state(const HubFile& file, uint32_t piece, PieceState state);
  PieceState state(const std::string& file_hash, uint32_t piece) const;

  // True for one thread in each period, which then asks all nodes of due() and calls end_refresh().
  bool begin_refresh();
  void end_refresh();
  // Forgets nodes that are not connected; returns the others, except those that failed just now.
  std::vector<NodeId> due(const std::vector<NodeId>& connected);
  void note(const NodeId& node, const FetchStatus& status);
  // Notes an asking node's own state from its question.
  void note_asker(const NodeId& node, const PieceAsk& ask);
  // Whether it is the first failure for a while.
  bool note_failure(const NodeId& node);
  bool is_one_unheard() const;
  // Whether a connected node has not been asked yet; then a refresh is due.
  bool is_one_new(const std::vector<NodeId>& connected);
  void note_rate(int machine, uint64_t bytes, std::chrono::duration<double> took);

  // Others that have pieces of what is fetched here, or are still finding out what the model is and
  // may have some from earlier; fastest first.
  std::vector<int> holders() const;
  // Machines that get pieces from the hub and make progress, including this node if it does.
  std::vector<int> fetchers() const;
  std::map<NodeId, FetchStatus> others() const;
  std::optional<NodeId> node_of(int machine) const;

 private:
  struct Other {
    FetchStatus status;
    bool was_asked = false;
    Clock::time_point moved_at{};  // when `received` last changed
    Clock::time_point left_alone_until{};
    double bytes_per_s = 0;  // 0: not known
  };
  bool is_fetching_locked(const Other& other, Clock::time_point now) const;
  bool uses_hub_locked() const;

  const NodeId self_;
  const std::string model_;
  const Times times_;

  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const ModelFiles> files_;
  std::shared_ptr<PieceStore> store_;
  bool may_use_hub_ = false;
  std::optional<Error> hub_error_;
  Clock::time_point hub_again_at_{};
  std::map<std::pair<std::string, uint32_t>, PieceState> states_;  // of pieces that are not idle
  std::map<NodeId, Other> others_;
  bool is_refreshing_ = false;
  Clock::time_point refreshed_at_{};
};

// This node's fetches in flight, by model. Any thread.
class FetchBoard {
 public:
  void add(std::shared_ptr<SharedFetch> fetch);
  void remove(const std::string& model);
  std::shared_ptr<SharedFetch> find(const std::string& model) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SharedFetch>> fetches_;
};

}  // namespace lockstep
