#include "node/requests/request_table.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

Error cancelled_error() {
  return {ErrorCode::kCancelled, "the request was cancelled"};
}

}  // namespace

void RequestTable::add(uint64_t id, GenerateRequest request, EventSink events, Time deadline) {
  Entry entry{std::move(request), std::move(events), deadline};
  entry.prompt_size = entry.request.prompt.size();
  entries_.emplace(id, std::move(entry));
}

void RequestTable::submit_held(
    const std::function<Status(uint64_t, const GenerateRequest&)>& submit, Time now) {
  std::vector<std::pair<uint64_t, Error>> refused;
  std::vector<uint64_t> complete;
  for (auto& [id, entry] : entries_) {
    if (entry.submitted || entry.retry_at > now) continue;
    if (is_complete(entry)) {
      complete.push_back(id);
      continue;
    }
    prepare(entry);
    entry.submitted = entry.was_submitted = true;
    const Status status = submit(id, entry.request);
    if (!status.ok()) refused.emplace_back(id, status.error());
  }
  for (uint64_t id : complete) end(id, FinishReason::kLength);
  for (auto& [id, error] : refused) end(id, std::move(error));
}

void RequestTable::take(RequestEvent event) {
  if (auto* ended = event.as<RequestEvent::Ended>())
    return end(event.id, std::move(ended->outcome));
  const auto found = entries_.find(event.id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (event.as<RequestEvent::Logprobs>()) {
    entry.logprobs = std::move(event);
    return;
  }
  const bool is_new =
      std::visit([&](const auto& what) { return note(event.id, entry, what); }, event.what);
  if (is_new) entry.events(std::move(event));
}

bool RequestTable::note(uint64_t id, Entry& entry, const RequestEvent::Started& started) {
  entry.prompt_done = static_cast<int>(entry.request.prompt.size());
  if (std::exchange(entry.is_paused, false)) {
    const int again = std::exchange(entry.lost_positions, 0) - started.cached_tokens;
    entry.events({id, RequestEvent::Resumed{std::max(0, again)}});
  }
  return !std::exchange(entry.is_started, true);
}

bool RequestTable::note(uint64_t, Entry& entry, const RequestEvent::Progress& progress) {
  entry.prompt_done = progress.done;
  return !entry.is_started;
}

bool RequestTable::note(uint64_t, Entry& entry, const RequestEvent::Token& token) {
  if (entry.request.max_tokens <= 0) return false;
  entry.request.prompt.push_back(token.token);
  ++entry.request.resumed_tokens;
  --entry.request.max_tokens;
  entry.losses = 0;
  entry.prompt_done =
      static_cast<int>(entry.request.prompt.size()) - 1;  // its own state comes later
  if (auto logprobs = std::exchange(entry.logprobs, std::nullopt)) {
    entry.events(std::move(*logprobs));
  }
  return true;
}

bool RequestTable::note(uint64_t, Entry& entry, const RequestEvent::Row&) {
  if (entry.rows_to_skip > 0) {
    --entry.rows_to_skip;
    return false;
  }
  ++entry.rows_told;
  return true;
}

void RequestTable::end(uint64_t id, Result<FinishReason> outcome) {
  auto entry = entries_.extract(id);
  if (entry.empty()) return;
  const bool was_told = entry.mapped().request.prompt.size() > entry.mapped().prompt_size;
  if (was_told && !outcome.ok() && outcome.error().code == ErrorCode::kExhausted) {
    outcome = FinishReason::kLength;
  }
  on_leave_();
  entry.mapped().events({id, RequestEvent::Ended{std::move(outcome)}});
}

bool RequestTable::cancel(uint64_t id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return false;
  found->second.is_cancelled = true;
  if (found->second.submitted) return true;
  end(id, cancelled_error());
  return false;
}

void RequestTable::hold_submitted(const Resumption& resumption, const Error& error) {
  context_ = resumption.context;
  std::vector<std::pair<uint64_t, Result<FinishReason>>> ended;
  for (auto& [id, entry] : entries_) {
    if (!entry.submitted) continue;
    if (auto outcome = lose(id, entry, resumption, error))
      ended.emplace_back(id, std::move(*outcome));
  }
  for (auto& [id, outcome] : ended) end(id, std::move(outcome));
}

void RequestTable::hold(uint64_t id, const Resumption& resumption, const Error& error) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.submitted) return;
  context_ = resumption.context;
  if (auto outcome = lose(id, found->second, resumption, error)) end(id, std::move(*outcome));
}

std::optional<Result<FinishReason>> RequestTable::lose(uint64_t id, Entry& entry,
                                                       const Resumption& resumption,
                                                       const Error& error) const {
  if (is_complete(entry)) return FinishReason::kLength;
  if (entry.is_cancelled) return cancelled_error();
  if (++entry.losses > resumption.losses_max) return error;
  entry.submitted = false;
  entry.logprobs.reset();  // its token is generated again
  entry.deadline = resumption.deadline;
  entry.retry_at = resumption.retry_at;
  entry.is_paused = true;
  entry.lost_positions = std::max(entry.lost_positions, std::exchange(entry.prompt_done, 0));
  entry.events({id, RequestEvent::Paused{error.message}});
  return std::nullopt;
}

void RequestTable::put_back(uint64_t id, Time retry_at) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.submitted) return;
  if (found->second.is_cancelled) return end(id, cancelled_error());
  found->second.submitted = false;
  found->second.retry_at = retry_at;
}

// It had ended, only the report of that was lost.
bool RequestTable::is_complete(const Entry& entry) const {
  const GenerateRequest& request = entry.request;
  const size_t resumed_tokens = request.prompt.size() - entry.prompt_size;
  if (resumed_tokens == 0) return false;
  const bool fills_context = context_ > 0 && request.prompt.size() > static_cast<size_t>(context_);
  return request.max_tokens == 0 || fills_context;
}

// Tokens already sent to the client are part of the prompt, including late ones from the lost
// group.
void RequestTable::prepare(Entry& entry) {
  entry.rows_to_skip = entry.rows_told;
  const bool has_tokens = entry.request.prompt.size() > entry.prompt_size;
  if (!has_tokens) return;
  entry.request.prompt_logits = false;  // the first token follows the last row
  entry.rows_to_skip = 0;
}

void RequestTable::fail_all(const Error& error) {
  fail_if(error, [](const Entry&) { return true; });
}

void RequestTable::fail_new(const Error& error) {
  fail_if(error, [](const Entry& entry) { return !entry.was_submitted; });
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

RequestTable::Time RequestTable::next_retry() const {
  Time next = Time::max();
  for (const auto& [id, entry] : entries_) {
    if (!entry.submitted) next = std::min(next, entry.retry_at);
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
