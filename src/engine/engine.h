// Engine: one rank of a group at work. It holds the rank's weights and sequence state. Rank 0 also
// has the schedule: it admits, batches and samples requests, and the other ranks follow. Used by
// node/worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collective/group/group.h"
#include "engine/draft_counts.h"
#include "engine/group_spec.h"
#include "engine/request_event.h"
#include "engine/store/page_store_counts.h"
#include "model/forward/overlap.h"
#include "model/load/latent_cut.h"
#include "sampling/options.h"
#include "weights/quantised/quantisation_report.h"

namespace lockstep {

struct EngineOptions {
  GroupSpec spec;       // with the number of threads
  int first_core = -1;  // -1: threads are not pinned
  // Tests choose these three; otherwise the kind of link decides, and what was measured.
  LatentCut latent_cut = LatentCut::kAuto;
  Overlap overlap = Overlap::kAuto;  // of prompt sums with computation
  int layer_guesses = 0;             // of the draft layer, in every step; 0: as many as pay
  // Where pages of state are cached on this machine's disk, for all models, and the limit in bytes;
  // 0: no cache.
  std::filesystem::path cache_folder;
  uint64_t cache_disk_bytes = 0;
  // At least this long between two measurements of links, see engine/run/link_turns.h; 0: never.
  std::chrono::milliseconds measure_links_every{0};
  const KernelTable* kernels = nullptr;
  Progress* progress = nullptr;
};

// How the hidden states of a prompt's tokens, after the final norm, become one embedding.
enum class Pooling {
  kNone,  // not requested
  kLast,  // the last token's
  kMean,
};

inline constexpr int kDraftTokensMax = 16;
inline constexpr int kGuessTokensMax = 64;  // of GenerateRequest::guess, in one step

struct GenerateRequest {
  std::vector<int32_t> prompt;    // not empty
  int max_tokens = 16;            // 0: only the prompt is processed (with prompt_logits or pooling)
  std::vector<int32_t> stop_ids;  // end of sequence; the one chosen is not reported
  SamplingOptions sampling;
  bool prompt_logits = false;        // report the logits after each prompt token
  bool draft_logits = false;         // and those of the draft layer, which has one token less
  Pooling pooling = Pooling::kNone;  // report an embedding; max_tokens must be 0
  // Up to this many tokens are guessed from the text so far and computed together with the next
  // one; the answer does not change. At most kDraftTokensMax.
  int draft_tokens = 0;
  // The probable answer, from its first token on: as much of it as is right is computed in steps of
  // kGuessTokensMax. The answer does not change.
  std::vector<int32_t> guess;
  bool reports_progress = false;  // of the prompt, see RequestEvent::Progress
  int chunk = 0;  // process the prompt in chunks of at most this; 0: the engine's choice

  // How many of the prompt's last tokens are an answer begun elsewhere and resumed here.
  int resumed_tokens = 0;
  // Constrains the answer, as a text of grammar/constraint.h; empty: no constraint.
  std::string constraint;
  std::vector<LogitBias> logit_bias;
  std::vector<int32_t> dry_breakers;  // tokens that break up repetitions
  int min_tokens = 0;                 // no stop id is chosen before the answer has this many tokens
  int top_logprobs = -1;              // alternatives reported for each token; -1: not even its own

  uint64_t client = 0;  // its owner; waiting requests of different clients take turns
  int priority = 0;     // higher ones are admitted first
};

// Makes a request in the thread that runs the engine, which calls it once. So a thread that
// receives long requests and has other duties need not decode them. An error ends the request.
using MakeRequest = std::function<Result<GenerateRequest>()>;

struct LoadReport {
  uint64_t weight_bytes = 0;  // checkpoint bytes of this rank's share, by the weight table
  uint64_t read_bytes = 0;    // checkpoint bytes actually read
  uint64_t token_bytes = 0;   // the part of weight_bytes that every new token reads
  uint64_t state_bytes = 0;   // keys and values
  int context = 0;
  int vocab_size = 0;
  // answer_identity() as hex digits; rank 0 only. Empty: nothing identifies the model's answers.
  std::string identity;
  // The layers of this rank's stage; -1: not known.
  int first_layer = -1;
  int last_layer = -1;
  QuantisationReport quantised;  // with `bits`: for this rank's parts
  std::string device;            // Device::description()
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const LoadReport& report() const = 0;

  // Any thread. Empty if this rank keeps no pages on disk.
  virtual std::optional<PageStoreCounts> page_store_counts() const { return {}; }

  // Any thread. Those of all epochs; only rank 0 counts.
  virtual DraftCounts draft_counts() const { return {}; }

  // Rank 0 only, any thread. Outcomes are reported as events.
  virtual void submit(uint64_t request, MakeRequest make) = 0;
  void submit(uint64_t request, GenerateRequest options) {
    submit(request, [made = std::move(options)]() mutable { return std::move(made); });
  }
  virtual void cancel(uint64_t request) = 0;

  // Any thread, any rank: run() returns Ok after the current step. (Rank 0 stops the followers.)
  virtual void stop() = 0;
  // Any thread, any rank: the epoch is over, run() returns kCancelled until rejoin() is called. The
  // group's own `cancelled` must also be set: it ends waits for other ranks.
  virtual void leave() = 0;

  // Works until stop() (Ok), or until the group breaks (the error, usually kPeerLost, kTimeout or
  // kCancelled). `events` is called on rank 0 only, in this thread. Idle ranks use no processor:
  // rank 0 waits on its inbox, followers on the group.
  virtual Status run(const EventSink& events) = 0;

  // Between two calls of run(), in the same thread: the ranks have formed a new group, with the
  // same size and this rank's number unchanged. Requests and sequences are dropped; weights, device
  // and threads stay, and run() can be called again. After an error, which is the device's, this
  // rank is lost.
  virtual Status rejoin(Group group) = 0;
};

// Reads this rank's share of the checkpoint. Every rank of `group` calls it. Nothing is exchanged,
// so the group need not be formed yet (transport/unformed_link.h).
Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options, Group group);

}  // namespace lockstep
