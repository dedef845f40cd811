// ModelCopies: copies of models on this node's disk that nothing here uses, so that a model which
// runs on a single node survives the loss of its disk: every byte of a loaded model is on two disks
// if there are two nodes. Used by node/cluster/cluster_models.h. Loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "cluster/brain/messages.h"
#include "net/event_loop.h"
#include "node/fetch/model_fetcher.h"

namespace lockstep {

// The node that keeps a copy of a model for the node that runs it: the next alive node in the order
// of ids, wrapping around. None if several nodes run it, since all of them have its files, or if no
// other node is alive. All nodes choose alike.
std::optional<NodeId> copy_keeper(std::span<const RankPart> ranks, const std::set<NodeId>& alive);

class ModelCopies {
 public:
  static constexpr size_t kAtOnce = 1;                    // fetches of serving models come first
  static constexpr std::chrono::seconds kRetryAfter{60};  // after a failed copy

  // Must exist until the fetcher has ended, or until it keeps nothing any more.
  ModelCopies(EventLoop& loop, ModelFetcher& fetcher) : loop_(loop), fetcher_(fetcher) {}
  ModelCopies(const ModelCopies&) = delete;
  ModelCopies& operator=(const ModelCopies&) = delete;

  // The models to keep, by DesiredEntry.path. Fetches of others stop; files already here stay.
  void keep(const std::set<std::string>& paths);

 private:
  struct Copy {
    uint64_t fetch = 0;  // in flight; 0: none
    bool is_here = false;
    EventLoop::Timer retry{};
    bool is_waiting = false;  // for that timer
  };
  void start_next();
  void on_done(const std::string& path, const Result<FetchedModel>& fetched);

  EventLoop& loop_;
  ModelFetcher& fetcher_;
  std::map<std::string, Copy> copies_;
};

}  // namespace lockstep
