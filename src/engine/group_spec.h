// GroupSpec: how a group runs a model, the same for all of its ranks. The command line fills it in,
// the node sends it to the workers, the engine follows it. A new option is a field here with its
// default, a line in for_each_group_field(), a flag (cli/flags/group_flags.cc) and its use.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "collective/plan/algorithm.h"
#include "collective/plan/wire.h"
#include "device/device_kinds.h"
#include "model/options/kv_kind.h"
#include "model/options/run_limits.h"
#include "transport/link_options.h"

namespace lockstep {

struct GroupSpec {
  std::filesystem::path model;    // a checkpoint folder or a .gguf file
  std::vector<double> shares{1};  // one for each rank, any positive scale
  LinkOptions link;               // with the stages of a pipeline: ranks in order, as many in each
  Wire wire = Wire::kF32;
  SumAlgorithm algorithm = SumAlgorithm::kAuto;
  int threads = 0;           // of each rank; 0: chosen by its machine before the engine is loaded
  bool pin_threads = false;  // rank r's team on cores [r * threads, (r + 1) * threads)
  int context = 0;           // positions of one sequence; 0: see context_for()
  int sequences_max = kSequencesDefault;       // that run together
  int batch_tokens_max = kBatchTokensDefault;  // in one step; longer prompts are fed in chunks
  std::string device{kDeviceDefault};          // or one for each rank: device_kind_of()
  bool exact = false;        // activations stay float32 where weights are quantised
  std::optional<KvKind> kv;  // of keys and values; not set: see kv_of()
  int bits = 0;              // not 0: weights are quantised to this many bits while they are read
  // The table of n-grams stays in the model's files; the bits of answers are the same.
  bool ngrams_on_disk = false;
  bool draft_layer = false;  // loaded, if the files have one, to guess tokens
  // Guesses instead of the layer, the same; or is the layer, in files of its own. Empty: neither.
  std::filesystem::path draft_model{};

  int size() const { return static_cast<int>(shares.size()); }
  friend bool operator==(const GroupSpec&, const GroupSpec&) = default;
};

// Calls visit(name, field) for each field; the names are those of the wire form. It does not
// compile if a field is missing in the first line.
template <class Spec, class Visit>
void for_each_group_field(Spec& spec, Visit&& visit) {
  auto& [model, shares, link, wire, algorithm, threads, pin_threads, context, sequences_max,
         batch_tokens_max, device, exact, kv, bits, ngrams_on_disk, draft_layer, draft_model] =
      spec;
  visit("model", model);
  visit("shares", shares);
  visit("link", link);
  visit("wire", wire);
  visit("algorithm", algorithm);
  visit("threads", threads);
  visit("pin_threads", pin_threads);
  visit("context", context);
  visit("sequences_max", sequences_max);
  visit("batch_tokens_max", batch_tokens_max);
  visit("device", device);
  visit("exact", exact);
  visit("kv", kv);
  visit("bits", bits);
  visit("ngrams_on_disk", ngrams_on_disk);
  visit("draft_layer", draft_layer);
  visit("draft_model", draft_model);
}

inline std::vector<double> equal_shares(int ranks) {
  return std::vector<double>(static_cast<size_t>(ranks < 0 ? 0 : ranks), 1.0);
}

}  // namespace lockstep
