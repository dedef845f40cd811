// ModelFetcher: turns a user's name for a model (DesiredEntry.path: a folder, a .gguf file, or a
// hub's name) into a loadable path on this machine, wherever in the cluster or at the hub its files
// are; and offers this node's models to other nodes. Each piece comes from the hub to one node, and
// from there to all that want it; what a node keeps, whole files or what its ranks read, is its
// choice (FetchSettings). A folder of another node is copied to $LOCKSTEP_HOME/models. All hashes
// are checked.
//
// Any thread, unless a function says otherwise; callbacks run on the loop's thread and must not
// wait. One fetch runs at a time for each model, shared by all requests for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "cluster/discovery/greeting.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "node/fetch/model_fetch.h"
#include "node/fetch/piece_network.h"

namespace lockstep {

class ModelFetcher {
 public:
  static constexpr size_t kFetchesMax = 4;     // at a time; others wait
  static constexpr size_t kRequestsMax = 256;  // kExhausted beyond

  struct Events {
    std::function<void(const FetchProgress&)> on_progress;  // a few times a second; may be empty
    std::function<void(Result<FetchedModel>)> on_done;      // once, unless cancelled
  };

  // `self`: this node. The loop and the network must outlive it.
  ModelFetcher(EventLoop& loop, PieceNetwork& network, const NodeId& self, FetchSettings settings);
  // Ends all fetches, which resume where they stopped when requested again; no callback follows.
  // Not from the loop's thread.
  ~ModelFetcher();

  // Returns files that are already here at once. Returns a number for cancel().
  uint64_t fetch(const std::string& model, Events events);
  // Only the small files, for a node that computes nothing: a folder with configuration, tokenizer
  // and template. For a GGUF model, which has these in its weights' file, all of it.
  uint64_t fetch_small(const std::string& model, Events events);
  // For planning and running a model: what the ranks of a plan on this node read, or only the table
  // of the weights. A node that keeps whole models (FetchSettings) fetches all of it.
  uint64_t fetch_reads(const std::string& model, const RankPlan& plan, Events events);
  uint64_t fetch_table(const std::string& model, Events events);
  // Copies of what others read of a model placed like this; with `drops`, pieces that two others
  // keep are given back. A request of another kind for the model ends it: kCancelled. An outcome
  // without weights means that whole files of this model are kept.
  uint64_t keep_copies(const std::string& model, const RankPlan& plan, bool drops, Events events);
  bool keeps_shares() const;
  std::chrono::milliseconds copies_every() const;

  // No callback follows once this has run on the loop. A fetch without requests is ended.
  void cancel(uint64_t number);

  // A model that the cluster is to run, anywhere: if it is a folder or file of this machine, other
  // nodes may copy it. A node calls this for each entry of the desired state; fetched models are
  // offered automatically.
  void offer(const std::string& model);

  // To be called after a model was removed from this disk. Any thread.
  void forget(const std::string& model);

  // Loop's thread: a stream of kind kPieceChannel from another node.
  void on_stream(const NodeId& from, const Channel& channel, FrameConnection connection);

 private:
  struct Impl;
  uint64_t add(const std::string& model, FetchWish wish, Events events);

  EventLoop& loop_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
