// ModelService: a loaded model as the server and the command line see it. Any thread.
// node/local_group implements it over worker processes on this machine; tests of the server use a
// fake.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/part.h"
#include "collective/probe.h"
#include "engine/engine.h"
#include "node/model_folder.h"
#include "tokenizer/tokenizer.h"
#include "transport/link_use.h"

namespace lockstep {

// Called from a thread of the service, in order, never after on_end returned. Exactly one on_end
// for each accepted request. They may call the service.
struct GenerationEvents {
  // The prompt is computed; the state of its first `cached_tokens` was there already. At most once,
  // before the first token. May be empty.
  std::function<void(int cached_tokens)> on_start;
  std::function<void(int32_t token)> on_token;
  // Right before the token that they are of, as EngineEvents has them. May be empty.
  std::function<void(std::span<const TokenLogprob>)> on_logprobs{};
  // A row of logits, or the embedding of a request with pooling. May be empty.
  std::function<void(std::span<const float> row)> on_logits;
  // The reason, or why it failed (kPeerLost: a worker died; kCancelled; kExhausted: does not fit
  // the context).
  std::function<void(Result<FinishReason>)> on_end;
};

struct RankStatus {
  int rank = 0;
  int64_t pid = 0;   // on its machine; 0: not known
  std::string node;  // whose machine it is on; empty: this one
  uint64_t weight_bytes = 0;
  uint64_t read_bytes = 0;
  uint64_t token_bytes = 0;  // of weight_bytes, those that every new token reads
  uint64_t state_bytes = 0;
};

// The link of one pair of ranks, measured when the group was formed.
struct PairStatus {
  LinkUse use;  // as rank times.a says; use.peer is times.b
  PairTimes times;
};

struct ModelStatus {
  enum class State { kLoading, kReady, kRestarting, kFailed, kStopped };
  State state = State::kLoading;
  std::string name;        // as clients ask for it
  std::string last_error;  // of the last failure, empty if none; says which rank and why
  int restarts = 0;        // groups that were formed anew
  uint64_t epoch = 0;      // of the group that serves, or served last
  // What came late from earlier epochs.
  uint64_t late_calls = 0;   // connections that were turned away
  uint64_t late_frames = 0;  // frames over RDMA that were dropped
  std::string link;
  int stages = 1;  // of the pipeline that the ranks form, in order
  int threads = 1;
  int context = 0;
  int vocab_size = 0;
  int running = 0;                       // requests that have not ended
  std::optional<PageStoreCounts> pages;  // on the disk of rank 0; none: not known, or none are kept
  Pooling pooling = Pooling::kLast;      // how the model makes embeddings
  std::vector<RankStatus> ranks;
  std::shared_ptr<const QuantisationReport> quantised;  // of all ranks together; null: not ready
  std::vector<PairStatus> links;                        // of each pair of ranks that has one

  // The groups that a model of the cluster is served by, as this node reaches them.
  struct Group {
    PlacementEpoch epoch;
    State state = State::kLoading;
    int running = 0;        // requests of all nodes, as far as they are known here
    bool is_shown = false;  // what stands above of ranks and links is of this one
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
  virtual ModelCard card() const { return {}; }  // as far as they are known
  // kExhausted when the queue is full or the prompt is longer than the context, kPeerLost while no
  // group is ready.
  virtual Result<uint64_t> generate(GenerateRequest request, GenerationEvents events) = 0;
  // Ends the request within one step with on_end(kCancelled); unknown ids are ignored.
  virtual void cancel(uint64_t request) = 0;
};

}  // namespace lockstep
