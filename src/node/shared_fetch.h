// SharedFetch: what one fetch of a model by this node knows: which pieces it is getting from the
// hub, and what the other nodes have told of the same model. The fetch's threads work with it, and
// piece_host.h answers other nodes from it. Machines are numbered by their ids (machine_of()), so
// that all nodes number them alike whoever is connected. Any thread.
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
#include "hub/model_files.h"
#include "hub/piece_store.h"
#include "node/piece_frames.h"

namespace lockstep {

// 31 bits of the id.
int machine_of(const NodeId& node);

class SharedFetch {
 public:
  using Clock = std::chrono::steady_clock;
  struct Times {
    std::chrono::milliseconds refresh{250};         // how often the others are asked what they have
    std::chrono::milliseconds retry{1'000};         // one that could not be asked is left alone
    std::chrono::milliseconds stuck_after{30'000};  // without a byte from the hub
    std::chrono::milliseconds hub_pause{30'000};    // after the hub could not be reached
  };

  SharedFetch(const NodeId& self, std::string model, Times times)
      : self_(self), model_(std::move(model)), times_(times) {}

  const NodeId& self() const { return self_; }
  const std::string& model() const { return model_; }

  // Once, when it is known what is fetched and whereto.
  void use_files(ModelFiles files, std::shared_ptr<PieceStore> store);
  std::shared_ptr<const ModelFiles> files() const;
  std::shared_ptr<PieceStore> store() const;
  std::string commit() const;  // empty: not known yet
  FetchStatus own_status() const;

  // Whether this node gets pieces from the hub. A failure that may pass counts for a while.
  void allow_hub();
  void note_hub_failure(const Error& error);
  bool uses_hub() const;
  std::optional<Error> hub_error() const;
  std::atomic<uint64_t> received{0};  // bytes from the hub; a count and nothing else: relaxed

  // Of this node's pieces: what others are told.
  void set_state(const HubFile& file, uint32_t piece, PieceState state);
  PieceState state(const std::string& file_hash, uint32_t piece) const;

  // True for one thread in each period, which then asks all of due() and ends with end_refresh().
  bool begin_refresh();
  void end_refresh();
  // Forgets who is not connected; the others but those that failed just now.
  std::vector<NodeId> due(const std::vector<NodeId>& connected);
  void note(const NodeId& node, const FetchStatus& status);
  // What a node that asks says of itself.
  void note_asker(const NodeId& node, const PieceAsk& ask);
  // Whether it is the first one for a while.
  bool note_failure(const NodeId& node);
  bool is_one_unheard() const;
  // Whether one of the connected has not been asked yet what it has; the next refresh is due then.
  bool is_one_new(const std::vector<NodeId>& connected);
  void note_rate(int machine, uint64_t bytes, std::chrono::duration<double> took);

  // Others that have pieces of what is fetched here, or are finding out what the model is and may
  // have some of it from an earlier time; the fastest first.
  std::vector<int> holders() const;
  // Those that get pieces from the hub and have not stopped, this node among them if it does.
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

  mutable std::mutex mutex_;  // of all that follows
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

// The fetches of this node that are under way, by model. Any thread.
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
