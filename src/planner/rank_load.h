// RankLoad: what one rank of a cut holds and what a token reads of it, by classes of layers, so
// that any range of layers is a sum of a few numbers. The exact counterpart of Model::load:
// tests/planner loads models and compares every byte. Used while one plan is made; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "model/load/cut.h"
#include "model/options/kv_kind.h"
#include "model/options/run_limits.h"
#include "planner/facts/model_facts.h"
#include "planner/placement.h"

namespace lockstep {

// Each is followed by an exchange, so ranks wait for the slowest twice per layer.
enum class LayerPart { kMixer, kFeedForward };
inline constexpr size_t kLayerParts = 2;

// The weights that a token reads.
struct TouchedWeights {
  double bytes = 0;  // in the checkpoint, without experts
  double elements = 0;
  double expert_bytes = 0;  // per expert
  double expert_elements = 0;
};

struct LayerLoad {
  TouchedWeights parts[kLayerParts];
  uint64_t weight_bytes = 0;
  uint64_t packed_bytes = 0;
  uint64_t vector_bytes = 0;
};

struct RankLoad {
  std::vector<LayerLoad> classes;  // one layer of each class
  std::vector<LayerLoad> shared;   // each of ModelFacts::shared
  LayerLoad head;                  // of these, those that a token's logits read
  LayerLoad entry;                 // and those that a token reads before the first layer
  int heads = 0;
  int state_heads = 0;         // of keys and values in the first layer; 1 for a latent
  int state_dim = 0;           // of one head there, keys or values
  double recurrent_bytes = 0;  // of a sequence's state in one recurrent layer
  int mixer_subtrees = 0;
  int feed_forward_subtrees = 0;
};

// The limits that determine the memory besides the model.
struct LoadLimits {
  int context = 0;  // positions of one sequence
  int streams = 1;  // sequences that run together
  int batch_tokens_max = kBatchTokensDefault;
  KvKind kv = kKvDefault;
};

class RankCounter {
 public:
  // `facts` must outlive it.
  explicit RankCounter(const ModelFacts& facts) : facts_(facts), counter_(facts.config) {}

  // kUnsupported or kCorrupt if a matrix cannot be laid out; the errors of Work::check().
  Result<RankLoad> count(const Cut& cut, int rank);

 private:
  Status add(const StoredWeight& weight, const Cut& cut, int rank, LayerLoad& load);

  const ModelFacts& facts_;
  WeightCounter counter_;
};

// Per token of the vocabulary, on ranks that make grammars from constraints: the tokenizer and the
// token trees, of which there may be four (engine/choices/grammar_maker.h). They are allocated with
// the first constraint; tests/node measures 578 bytes for Qwen's 151,646 tokens.
inline constexpr uint64_t kGrammarBytesOfToken = 768;

// For a rank with these layers.
Result<RankMemory> rank_memory(const ModelFacts& facts, const Cut& cut, int rank,
                               const RankLoad& load, Range layers, const LoadLimits& limits);
// For a whole draft model, in the process of a rank: it keeps all pages (GroupSpec::draft_model).
Result<RankMemory> draft_model_memory(const ModelFacts& facts, const Cut& cut, int rank,
                                      const RankLoad& load, const LoadLimits& limits);

}  // namespace lockstep
