// ModelService: a model as the server and the command line see it. Any thread.
// node/group/group_supervisor.h implements it over worker processes, node/cluster/routed_model.h
// over a cluster's groups; tests of the server use a fake.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/part.h"
#include "collective/group/probe.h"
#include "engine/engine.h"
#include "node/models/model_folder.h"
#include "tokenizer/tokenizer.h"
#include "transport/link_use.h"

namespace lockstep {

// Requests that may wait beyond those that run together.
inline constexpr int kQueueDefault = 64;

struct RankStatus {
  int rank = 0;
  int64_t pid = 0;   // on its machine; 0: not known
  std::string node;  // the name of the node it is on; empty: the one that leads the group
  uint64_t weight_bytes = 0;
  uint64_t read_bytes = 0;
  uint64_t token_bytes = 0;  // those of weight_bytes that every new token reads
  uint64_t state_bytes = 0;
  // The layers of its stage; -1: not known.
  int first_layer = -1;
  int last_layer = -1;
  double share = 0;    // of the model, in any scale; 0: not known
  std::string device;  // where it computes: Device::description(); empty: not known
};

// The weights of all ranks together, while a model is loaded.
struct ModelLoading {
  uint64_t read_bytes = 0;
  uint64_t whole_bytes = 0;
  double bytes_s = 0;  // over the last seconds; 0 while nothing is read
};

// The link of one pair of ranks.
struct PairStatus {
  LinkUse use;         // as rank times.a reports it; use.peer is times.b
  PairTimes times;     // measured when the group was formed; again in turn within a stage
  double bytes_s = 0;  // carried in both directions, over the last seconds
};

struct ModelStatus {
  enum class State { kLoading, kReady, kRestarting, kFailed, kStopped };
  State state = State::kLoading;
  std::string name;        // as clients ask for it
  std::string last_error;  // of the last failure, empty if none; says which rank and why
  int restarts = 0;        // groups formed again
  uint64_t epoch = 0;      // of the serving group, or the last one
  // Late arrivals from earlier epochs.
  uint64_t late_calls = 0;   // connections that were refused
  uint64_t late_frames = 0;  // frames over RDMA that were dropped
  std::string link;
  int stages = 1;  // of the ranks' pipeline, in order
  int threads = 1;
  int context = 0;
  int vocab_size = 0;
  std::string identity;                   // as in LoadReport; empty also while it is not known
  int running = 0;                        // requests that have not ended
  std::optional<PageStoreCounts> pages;   // on rank 0's disk; none: not known, or no pages are kept
  std::optional<DraftCounts> drafts;      // of its draft layer; none: it has made no guess
  Pooling pooling = Pooling::kLast;       // how the model makes embeddings
  std::optional<ModelLoading> loading{};  // none: it is not loaded now, or not known
  std::vector<RankStatus> ranks;
  std::shared_ptr<const QuantisationReport> quantised;  // all ranks together; null: not ready
  std::vector<PairStatus> links;                        // of each linked pair of ranks

  // The groups that serve a model of the cluster, as this node reaches them.
  struct Group {
    PlacementEpoch epoch;
    State state = State::kLoading;
    int running = 0;        // requests of all nodes, as far as known here
    bool is_shown = false;  // ranks and links above are this one's
  };
  std::vector<Group> groups;
};

class ModelService {
 public:
  virtual ~ModelService() = default;
  virtual std::shared_ptr<const Tokenizer> tokenizer() const = 0;  // null if the model has none
  virtual ModelStatus status() const = 0;
  // End-of-sequence ids of the model.
  virtual std::vector<int32_t> stop_ids() const = 0;
  virtual ModelChatFormat chat_format() const = 0;
  virtual SamplingDefaults sampling_defaults() const = 0;
  virtual ModelCard card() const { return {}; }  // as far as known
  // kExhausted when the queue is full or the prompt is longer than the context, kPeerLost while no
  // group is ready. `events` is called from a thread of the service, maybe before this returns, and
  // may call the service. An accepted request ends exactly once, and nothing follows its end, which
  // may be an error: kPeerLost (a worker died), kCancelled, kExhausted (it does not fit the
  // context). Never busy.
  virtual Result<uint64_t> generate(GenerateRequest request, EventSink events) = 0;
  // The request ends with kCancelled within one step; unknown ids are ignored.
  virtual void cancel(uint64_t request) = 0;
};

}  // namespace lockstep
