// LocalParts: what this node holds of placements, and its own memory's book. Only the node itself
// promises its memory, so it is never promised twice, whoever coordinates. Of each model it obeys
// the highest epoch it has seen. Pure; the Brain turns what is returned into actions. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/messages.h"
#include "cluster/part.h"

namespace lockstep {

inline constexpr int64_t kReservationMs = 15'000;  // without a start it is taken back
inline constexpr size_t kEpochsKeptMax = 2 * kDesiredNamesMax;

// What became of the processes of a part: from whoever runs them.
struct PartEvent {
  enum class Kind { kReady, kFailed, kStopped };
  Kind kind = Kind::kReady;
  std::string reason;  // of kFailed: one sentence
};

struct LocalPart {
  PartReport report;
  DesiredEntry entry;  // what it was reserved for
  int64_t reserved_ms = 0;
};

class LocalParts {
 public:
  LocalParts(const NodeId& self, int64_t budget_bytes) : self_(self), budget_bytes_(budget_bytes) {}

  // The same order again gets the same answer.
  ReserveReply reserve(int64_t now_ms, const ReserveOrder& order);
  // The part to be started; nullptr: nothing is to be done (not reserved, or running already).
  const LocalPart* start(const StartOrder& order);
  // True if processes must be ended now. A reservation or a failed part simply goes.
  bool stop(const std::string& model, const PlacementEpoch& epoch);
  // False for a part that is not there.
  bool report(const std::string& model, const PlacementEpoch& epoch, const PartEvent& event);
  // Takes old reservations back; whether there were any.
  bool tick(int64_t now_ms);

  int64_t budget_bytes() const { return budget_bytes_; }
  int64_t promised_bytes() const;
  std::vector<PartReport> reports() const;
  // Counts changes, so that others can see whether to tell of them.
  int64_t revision() const { return revision_; }

 private:
  using Key = std::pair<std::string, PlacementEpoch>;

  std::string refusal(const ReserveOrder& order, int64_t bytes) const;
  bool remember(const std::string& model, const PlacementEpoch& epoch);
  bool has_part(std::string_view model) const;

  NodeId self_;
  int64_t budget_bytes_;
  std::map<Key, LocalPart> parts_;                 // at most kPartsMax
  std::map<std::string, PlacementEpoch> highest_;  // at most kEpochsKeptMax
  int64_t revision_ = 0;
};

}  // namespace lockstep
