#include "node/request_table.h"

#include <algorithm>
#include <utility>

namespace lockstep {

void RequestTable::add(uint64_t id, GenerateRequest request, GenerationEvents events,
                       Time deadline) {
  entries_.emplace(id, Entry{std::move(request), std::move(events), deadline, false});
}

void RequestTable::submit_held(
    const std::function<Status(uint64_t, const GenerateRequest&)>& submit) {
  std::vector<std::pair<uint64_t, Error>> refused;
  for (auto& [id, entry] : entries_) {
    if (entry.submitted) continue;
    entry.submitted = true;
    const Status status = submit(id, entry.request);
    if (!status.ok()) refused.emplace_back(id, status.error());
    entry.request = {};  // the engine has its own
  }
  for (auto& [id, error] : refused) end(id, std::move(error));
}

void RequestTable::token(uint64_t id, int32_t token) {
  const auto found = entries_.find(id);
  if (found != entries_.end() && found->second.events.on_token) {
    found->second.events.on_token(token);
  }
}

void RequestTable::logits(uint64_t id, std::span<const float> row) {
  const auto found = entries_.find(id);
  if (found != entries_.end() && found->second.events.on_logits) {
    found->second.events.on_logits(row);
  }
}

void RequestTable::end(uint64_t id, Result<FinishReason> outcome) {
  auto entry = entries_.extract(id);
  if (entry.empty()) return;
  on_leave_();
  if (entry.mapped().events.on_end) entry.mapped().events.on_end(std::move(outcome));
}

bool RequestTable::cancel_held(uint64_t id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.submitted) return false;
  end(id, Error{ErrorCode::kCancelled, "the request was cancelled"});
  return true;
}

void RequestTable::fail_submitted(const Error& error) {
  fail_if(error, [](const Entry& entry) { return entry.submitted; });
}

void RequestTable::fail_all(const Error& error) {
  fail_if(error, [](const Entry&) { return true; });
}

void RequestTable::fail_expired(Time now, const Error& error) {
  fail_if(error, [now](const Entry& entry) { return !entry.submitted && entry.deadline <= now; });
}

RequestTable::Time RequestTable::next_deadline() const {
  Time next = Time::max();
  for (const auto& [id, entry] : entries_) {
    if (!entry.submitted) next = std::min(next, entry.deadline);
  }
  return next;
}

void RequestTable::fail_if(const Error& error, const std::function<bool(const Entry&)>& condition) {
  std::vector<uint64_t> ids;
  for (const auto& [id, entry] : entries_) {
    if (condition(entry)) ids.push_back(id);
  }
  for (uint64_t id : ids) end(id, error);
}

}  // namespace lockstep
