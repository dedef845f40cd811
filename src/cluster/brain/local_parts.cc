#include "cluster/brain/local_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "cluster/sentences.h"

namespace lockstep {

ReserveReply LocalParts::reserve(int64_t now_ms, const ReserveOrder& order) {
  const std::string& model = order.entry.name;
  ReserveReply reply{.model = model, .epoch = order.epoch};
  const auto held = parts_.find({model, order.epoch});
  if (held != parts_.end()) {
    reply.is_granted = held->second.report.state == PartState::kReserved;
    if (!reply.is_granted) reply.reason = "this part is no longer a reservation";
    reply.highest = highest_[model];
    return reply;
  }
  const int64_t bytes = bytes_on(order.plan.ranks, self_);
  reply.reason = refusal(order, bytes);
  if (reply.reason.empty() && !remember(model, order.epoch)) {
    reply.reason = "this node has seen too many models";
  }
  const auto highest = highest_.find(model);
  if (highest != highest_.end()) reply.highest = highest->second;
  if (!reply.reason.empty()) return reply;

  reply.is_granted = true;
  PlacementShare part{.model = model,
                      .epoch = order.epoch,
                      .ranks = order.plan.ranks,
                      .key = placement_key(order.entry),
                      .state = PartState::kReserved,
                      .bytes = bytes,
                      .reason = {},
                      .stages = order.plan.stages};
  parts_.emplace(Key(model, order.epoch), LocalPart{std::move(part), order.entry, now_ms});
  ++revision_;
  return reply;
}

const LocalPart* LocalParts::start(const StartOrder& order) {
  const auto found = parts_.find({order.model, order.epoch});
  if (found == parts_.end() || found->second.report.state != PartState::kReserved) return nullptr;
  found->second.report.state = PartState::kStarting;
  ++revision_;
  return &found->second;
}

bool LocalParts::stop(const std::string& model, const PlacementEpoch& epoch) {
  const auto found = parts_.find({model, epoch});
  if (found == parts_.end() || found->second.report.state == PartState::kStopping) return false;
  ++revision_;
  const PartState state = found->second.report.state;
  if (state == PartState::kReserved || state == PartState::kFailed) {
    parts_.erase(found);
    return false;
  }
  found->second.report.state = PartState::kStopping;
  return true;
}

bool LocalParts::report(const std::string& model, const PlacementEpoch& epoch,
                        const PartEvent& event) {
  const auto found = parts_.find({model, epoch});
  if (found == parts_.end() || found->second.report.state == PartState::kReserved) return false;
  ++revision_;
  PlacementShare& part = found->second.report;
  const bool was_stopping = part.state == PartState::kStopping;
  if (event.kind == PartEvent::Kind::kReady) {
    if (part.state == PartState::kStarting) part.state = PartState::kReady;
  } else if (event.kind == PartEvent::Kind::kStopped || was_stopping) {
    parts_.erase(found);
  } else {
    part.state = PartState::kFailed;
    part.bytes = 0;
    part.reason = short_sentence(event.reason);
  }
  return true;
}

bool LocalParts::tick(int64_t now_ms) {
  const size_t erased = std::erase_if(parts_, [now_ms](const auto& item) {
    return item.second.report.state == PartState::kReserved &&
           now_ms - item.second.reserved_ms >= kReservationMs;
  });
  if (erased > 0) ++revision_;
  return erased > 0;
}

int64_t LocalParts::promised_bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, part] : parts_) bytes += part.report.bytes;
  return bytes;
}

std::vector<PlacementShare> LocalParts::reports() const {
  std::vector<PlacementShare> reports;
  reports.reserve(parts_.size());
  for (const auto& [key, part] : parts_) reports.push_back(part.report);
  return reports;
}

// Empty: no refusal.
std::string LocalParts::refusal(const ReserveOrder& order, int64_t bytes) const {
  const auto highest = highest_.find(order.entry.name);
  if (highest != highest_.end() && order.epoch <= highest->second) {
    return fmt::format("epoch {} of model '{}' is over: epoch {} was seen", order.epoch.counter,
                       order.entry.name, highest->second.counter);
  }
  if (bytes <= 0) return "the placement has no rank on this node";
  if (has_part(order.entry.name)) {
    return fmt::format("an earlier epoch of model '{}' is still here", order.entry.name);
  }
  const int64_t free = budget_bytes_ - promised_bytes();
  if (bytes > free) {
    return fmt::format("{} are needed on node {}, which has {} free", gib_text(bytes),
                       self_.short_text(), gib_text(free));
  }
  if (parts_.size() >= kPartsMax) {
    return fmt::format("node {} already has {} parts of models", self_.short_text(), kPartsMax);
  }
  return {};
}

// Records the highest epoch of a model. kEpochsKeptMax are kept; one of a model without parts here
// is evicted for a new one. (A late order of an evicted epoch only reserves memory for a while: its
// coordinator sees a part that it does not want.)
bool LocalParts::remember(const std::string& model, const PlacementEpoch& epoch) {
  if (highest_.size() >= kEpochsKeptMax && highest_.find(model) == highest_.end()) {
    const auto unused = std::find_if(highest_.begin(), highest_.end(),
                                     [&](const auto& item) { return !has_part(item.first); });
    if (unused == highest_.end()) return false;
    highest_.erase(unused);
  }
  highest_[model] = epoch;
  return true;
}

bool LocalParts::has_part(std::string_view model) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const auto& item) { return item.first.first == model; });
}

}  // namespace lockstep
