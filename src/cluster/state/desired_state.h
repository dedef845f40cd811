// DesiredState: what should be loaded, and with which promises. Every node has one, in memory and
// on its disk; each user's request is written with a stamp, and two states merge name by name: the
// later stamp wins. merge() is commutative, associative and idempotent, so nodes that have
// exchanged their states hold the same. A value without threads or clocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/named_values.h"
#include "base/result.h"
#include "cluster/node_id.h"
#include "cluster/stamp.h"

namespace lockstep {

inline constexpr size_t kDesiredNamesMax = 1024;  // including unloaded ones
inline constexpr size_t kDesiredLiveMax = 64;     // wanted models, as one user sees them
inline constexpr size_t kModelNameBytesMax = 256;
inline constexpr size_t kModelPathBytesMax = 4096;
inline constexpr size_t kKvNameBytesMax = 16;
inline constexpr size_t kAliasesMax = 16;
inline constexpr size_t kPinnedMax = 64;
inline constexpr int64_t kPromiseMax = int64_t{1} << 40;
inline constexpr int64_t kReplicasMax = 16;

enum class Parallelism : uint8_t { kAuto, kTensor, kPipeline };

inline constexpr NamedValues<Parallelism, 3> kParallelisms{{{Parallelism::kAuto, "auto"},
                                                            {Parallelism::kTensor, "tensor"},
                                                            {Parallelism::kPipeline, "pipeline"}}};

// 0 leaves a number to the planner.
struct ModelPromises {
  int64_t context = 0;
  int64_t streams = 0;
  int64_t parallel = 0;  // ranks
  Parallelism parallelism = Parallelism::kAuto;
  std::vector<NodeId> pinned;  // only on these; empty: anywhere
  std::vector<std::string> aliases;
  // 0: always loaded. Else loaded on demand, and unloaded when unused for this long.
  int64_t idle_unload_s = 0;
  // Groups that each hold the whole model, on disjoint nodes; streams are those of all groups.
  int64_t replicas = 1;
  bool ngrams_on_disk = false;  // GroupSpec::ngrams_on_disk
  std::string kv{};             // the name of GroupSpec::kv; empty: not set

  bool operator==(const ModelPromises&) const = default;
};

struct DesiredEntry {
  std::string name;
  Stamp stamp;
  bool wanted = false;  // false: unloaded, kept as a record of that
  std::string path;     // a folder, or a model of the hub
  // Another model, given the same way, that guesses its tokens, or its draft layer in files of its
  // own; empty: neither.
  std::string draft_model{};
  ModelPromises promises;

  // Whether an answer that one of them began may go on with the other: all that changes the bits of
  // answers is the same.
  bool has_answers_of(const DesiredEntry& other) const;
  // Whether a node that runs the model reads the files of `model`, which is given like `path`.
  bool reads(std::string_view model) const;
  bool operator==(const DesiredEntry&) const = default;
};

// kInvalidArgument with the limit that an entry exceeds.
Status check_entry(const DesiredEntry& entry);
// The same for a request made now; also rejects names that are paths, so that a file named after
// one stays in its intended folder: slashes may separate parts, as in org/name, none of which is
// empty, "." or "..", and there is no backslash.
Status check_wish(const DesiredEntry& entry);
// The fields that decide a placement: two entries with the same key need no new one.
int64_t placement_key(const DesiredEntry& entry);

class DesiredState {
 public:
  // A user's write; its stamp must be later than the held one. kExhausted if a limit would drop
  // something wanted.
  Status put(const DesiredEntry& entry);
  // Whether anything changed. Beyond kDesiredNamesMax the names written longest ago are dropped.
  bool merge(const DesiredEntry& entry);
  bool merge(const DesiredState& other);

  const std::map<std::string, DesiredEntry, std::less<>>& entries() const { return entries_; }
  const DesiredEntry* find(std::string_view name) const;
  // Equal on two nodes exactly if they hold the same entries (64-bit hash).
  int64_t digest() const { return digest_; }

  bool operator==(const DesiredState& other) const { return entries_ == other.entries_; }

 private:
  void set(const DesiredEntry& entry);
  std::map<std::string, DesiredEntry, std::less<>>::const_iterator oldest() const;

  std::map<std::string, DesiredEntry, std::less<>> entries_;
  int64_t digest_ = 0;
};

}  // namespace lockstep
