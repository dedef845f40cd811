// ModelCopies: copies of models on this node's disk that nothing here needs, so that a model which
// runs on one node alone survives the loss of that node's disk: of what is loaded every byte is on
// two disks wherever there are two nodes. Used by node/cluster_models.h. Loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "cluster/messages.h"
#include "net/event_loop.h"
#include "node/model_fetcher.h"

namespace lockstep {

// Of the nodes that are alive, in the order of their ids, the one that keeps a copy of a model for
// the node that runs it: the next one after it, or the first. Nothing where several nodes run it,
// which all have its files, or nobody else is there. All nodes choose alike.
std::optional<NodeId> copy_keeper(std::span<const RankPart> ranks, const std::set<NodeId>& alive);

class ModelCopies {
 public:
  static constexpr size_t kAtOnce = 1;                    // what serves goes first
  static constexpr std::chrono::seconds kRetryAfter{60};  // of one that failed

  // This must be there until the fetcher has ended, or keeps nothing any more.
  ModelCopies(EventLoop& loop, ModelFetcher& fetcher) : loop_(loop), fetcher_(fetcher) {}
  ModelCopies(const ModelCopies&) = delete;
  ModelCopies& operator=(const ModelCopies&) = delete;

  // What this node is to keep, by DesiredEntry.path. What is wanted no more is not fetched any
  // further; what has come stays.
  void keep(const std::set<std::string>& paths);

 private:
  struct Copy {
    uint64_t fetch = 0;  // under way; 0: none
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
