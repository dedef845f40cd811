// LocalParts: what this node holds of placements, and the accounts of its memory. Only the node
// itself promises its memory, so it is never promised twice, whichever node coordinates. For each
// model it obeys the highest epoch seen. Pure; the Brain turns results into actions. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/brain/messages.h"
#include "cluster/part.h"

namespace lockstep {

inline constexpr int64_t kReservationMs = 15'000;  // expires without a start
inline constexpr size_t kEpochsKeptMax = 2 * kDesiredNamesMax;

// The outcome of a part's processes, from whatever runs them.
struct PartEvent {
  enum class Kind { kReady, kFailed, kStopped };
  Kind kind = Kind::kReady;
  std::string reason;  // of kFailed: one sentence
};

struct LocalPart {
  PlacementShare report;
  DesiredEntry entry;  // what it was reserved for
  int64_t reserved_ms = 0;
};

class LocalParts {
 public:
  LocalParts(const NodeId& self, int64_t budget_bytes) : self_(self), budget_bytes_(budget_bytes) {}

  // A repeated order gets the same answer.
  ReserveReply reserve(int64_t now_ms, const ReserveOrder& order);
  // The part to be started; nullptr: nothing to do (not reserved, or running already).
  const LocalPart* start(const StartOrder& order);
  // True if processes must be ended now. A reservation or a failed part is simply removed.
  bool stop(const std::string& model, const PlacementEpoch& epoch);
  // False for an unknown part.
  bool report(const std::string& model, const PlacementEpoch& epoch, const PartEvent& event);
  // Removes expired reservations; whether there were any.
  bool tick(int64_t now_ms);

  int64_t budget_bytes() const { return budget_bytes_; }
  int64_t promised_bytes() const;
  std::vector<PlacementShare> reports() const;
  // Counts changes, so that callers can see whether to report them.
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
