// ModelFetcher: from what a user calls a model (DesiredEntry.path: a folder, a .gguf file, or a
// name of a hub) to a path on this machine that can be loaded, wherever in the cluster or at the
// hub it lies; and this node's models for the other nodes. Each piece of a model comes from the hub
// to one node, and from there to all others that want it; what they keep of it, whole files or what
// their ranks read, is each node's own choice (FetchSettings). A folder of another node is copied
// to $LOCKSTEP_HOME/models. Every file is checked by its hash.
//
// Any thread, unless a function says otherwise; callbacks come on the loop's thread and must not
// wait. Of one model one fetch runs at a time, which all who ask for it share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "cluster/greeting.h"
#include "net/event_loop.h"
#include "net/frame_connection.h"
#include "node/model_fetch.h"
#include "node/piece_network.h"

namespace lockstep {

class ModelFetcher {
 public:
  static constexpr size_t kFetchesMax = 4;     // at a time; further ones wait
  static constexpr size_t kRequestsMax = 256;  // kExhausted beyond

  struct Events {
    std::function<void(const FetchProgress&)> on_progress;  // a few times a second; may be empty
    std::function<void(Result<FetchedModel>)> on_done;      // once, unless it is cancelled
  };

  // `self`: this node. The loop and the network must outlive it.
  ModelFetcher(EventLoop& loop, PieceNetwork& network, const NodeId& self, FetchSettings settings);
  // Ends all fetches, which go on where they stopped when they are asked for again; no callback
  // comes any more. Not from the loop's thread.
  ~ModelFetcher();

  // What is here already is answered at once. A number for cancel().
  uint64_t fetch(const std::string& model, Events events);
  // The small files alone, for a node that computes nothing: a folder with configuration, tokenizer
  // and template. Of a model in GGUF, which has them in its weights' file, all of it.
  uint64_t fetch_small(const std::string& model, Events events);
  // Of a model that is to be planned: with what the ranks of a plan on this node read, or only with
  // the table of the weights. A node that keeps whole models (FetchSettings) fetches all of it.
  uint64_t fetch_reads(const std::string& model, const RankPlan& plan, Events events);
  uint64_t fetch_table(const std::string& model, Events events);
  // What this node is to keep of what others read, of a model that is placed like this; with
  // `drops` what two others keep is given back. A request of another kind for the model ends it:
  // kCancelled. An outcome without weights is a model of which whole files are kept.
  uint64_t keep_copies(const std::string& model, const RankPlan& plan, bool drops, Events events);
  bool keeps_shares() const;
  std::chrono::milliseconds copies_every() const;

  // Its callbacks come no more once this runs on the loop. A fetch that nobody waits for is ended.
  void cancel(uint64_t number);

  // A model that the cluster is to run, wherever: if it is a folder or file of this machine, other
  // nodes may copy it from here. A node calls it for each entry of the desired state; what is
  // fetched here is offered by itself.
  void offer(const std::string& model);

  // Loop's thread: a stream of kind kPieceChannel from another node.
  void on_stream(const NodeId& from, const Channel& channel, FrameConnection connection);

 private:
  struct Impl;
  uint64_t add(const std::string& model, FetchWish wish, Events events);

  EventLoop& loop_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
