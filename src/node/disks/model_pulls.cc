#include "node/disks/model_pulls.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "hub/files/model_id.h"

namespace lockstep {
namespace {

PullPhase phase_of(const FetchProgress& progress) {
  if (progress.note.empty()) return PullPhase::kDownloading;
  return progress.note == kCheckingNote ? PullPhase::kChecking : PullPhase::kListing;
}

}  // namespace

std::string_view pull_phase_name(PullPhase phase) {
  switch (phase) {
    case PullPhase::kWaiting:
      return "waiting";
    case PullPhase::kListing:
      return "listing";
    case PullPhase::kDownloading:
      return "downloading";
    case PullPhase::kChecking:
      return "checking";
    case PullPhase::kDone:
      return "done";
    case PullPhase::kFailed:
      return "failed";
  }
  return "";
}

Status ModelPulls::start(const std::string& model) {
  const ModelId id = TRY(parse_model_id(model));
  if (id.text() != model) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("write {} as {}", model, id.text())};
  }
  uint64_t number = 0;
  {
    const std::lock_guard lock(state_->mutex);
    const auto known = state_->items.find(model);
    if (known != state_->items.end() && !known->second.ended_at) return Ok{};
    const auto running =
        static_cast<size_t>(std::count_if(state_->items.begin(), state_->items.end(),
                                          [](const auto& one) { return !one.second.ended_at; }));
    if (running >= kRunningMax) {
      return Error{ErrorCode::kExhausted,
                   fmt::format("{} models are being downloaded already; stop one, or wait until "
                               "one has come",
                               running)};
    }
    number = ++state_->last_number;
    Item item{.number = number, .shown = {.model = model}};
    item.rate.note(Clock::now(), 0);
    if (known != state_->items.end()) state_->items.erase(known);
    state_->items.emplace(model, std::move(item));
    state_->forget_ended(Clock::now());
  }
  const std::weak_ptr<State> weak = state_;
  const uint64_t fetch =
      fetcher_.fetch(model, {.on_progress =
                                 [weak, model, number](const FetchProgress& progress) {
                                   if (const auto state = weak.lock())
                                     state->note(model, number, progress);
                                 },
                             .on_done =
                                 [weak, model, number](const Result<FetchedModel>& outcome) {
                                   if (const auto state = weak.lock())
                                     state->end(model, number, outcome);
                                 }});
  const std::lock_guard lock(state_->mutex);
  if (Item* item = state_->find(model, number)) {
    item->fetch = fetch;
  } else {
    fetcher_.cancel(fetch);  // stopped meanwhile
  }
  return Ok{};
}

Status ModelPulls::stop(const std::string& model) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->items.find(model);
  if (found == state_->items.end()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is not being downloaded on this node", model)};
  }
  if (!found->second.ended_at && found->second.fetch != 0) fetcher_.cancel(found->second.fetch);
  state_->items.erase(found);
  return Ok{};
}

bool ModelPulls::is_running(const std::string& model) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->items.find(model);
  return found != state_->items.end() && !found->second.ended_at;
}

std::vector<ModelPull> ModelPulls::list(Clock::time_point now) const {
  std::vector<std::pair<uint64_t, ModelPull>> numbered;
  {
    const std::lock_guard lock(state_->mutex);
    state_->forget_ended(now);
    for (const auto& [model, item] : state_->items) {
      ModelPull shown = item.shown;
      if (!item.ended_at) shown.bytes_s = item.rate.at(now);
      if (shown.bytes_s >= 1 && shown.whole_bytes && *shown.whole_bytes >= shown.read_bytes) {
        shown.seconds_left =
            static_cast<double>(*shown.whole_bytes - shown.read_bytes) / shown.bytes_s;
      }
      numbered.emplace_back(item.number, std::move(shown));
    }
  }
  std::sort(numbered.begin(), numbered.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ModelPull> pulls;
  for (auto& [number, pull] : numbered) pulls.push_back(std::move(pull));
  return pulls;
}

// Null if that attempt is over and forgotten.
ModelPulls::Item* ModelPulls::State::find(const std::string& model, uint64_t number) {
  const auto found = items.find(model);
  return found != items.end() && found->second.number == number ? &found->second : nullptr;
}

void ModelPulls::State::note(const std::string& model, uint64_t number,
                             const FetchProgress& progress) {
  const std::lock_guard lock(mutex);
  Item* const item = find(model, number);
  if (item == nullptr || item->ended_at) return;
  item->shown.phase = phase_of(progress);
  item->shown.sentence = item->shown.phase == PullPhase::kListing ? progress.note : "";
  if (item->shown.phase == PullPhase::kListing) return;
  item->shown.read_bytes = progress.bytes_there;
  if (progress.whole_bytes > 0) item->shown.whole_bytes = progress.whole_bytes;
  if (progress.from_nodes_bytes > item->from_nodes) item->shown.source = "neighbour";
  if (progress.from_hub_bytes > item->from_hub) item->shown.source = "hub";
  item->from_nodes = progress.from_nodes_bytes;
  item->from_hub = progress.from_hub_bytes;
  item->rate.note(Clock::now(), item->from_hub + item->from_nodes);
}

void ModelPulls::State::end(const std::string& model, uint64_t number,
                            const Result<FetchedModel>& outcome) {
  const std::lock_guard lock(mutex);
  Item* const item = find(model, number);
  if (item == nullptr || item->ended_at) return;
  item->ended_at = Clock::now();
  item->shown.phase = outcome.ok() ? PullPhase::kDone : PullPhase::kFailed;
  item->shown.sentence = outcome.ok() ? "" : outcome.error().message;
  if (!outcome.ok()) return;
  if (item->shown.source.empty()) item->shown.source = "disk";
  if (item->shown.whole_bytes) item->shown.read_bytes = *item->shown.whole_bytes;
}

void ModelPulls::State::forget_ended(Clock::time_point now) {
  std::erase_if(items, [&](const auto& one) {
    const Item& item = one.second;
    return item.shown.phase == PullPhase::kDone && now - *item.ended_at > kDoneShown;
  });
  for (;;) {
    auto oldest = items.end();
    size_t ended = 0;
    for (auto item = items.begin(); item != items.end(); ++item) {
      if (!item->second.ended_at) continue;
      ++ended;
      const bool is_older =
          oldest == items.end() || *item->second.ended_at < *oldest->second.ended_at;
      if (is_older) oldest = item;
    }
    if (ended <= kEndedMax) return;
    items.erase(oldest);
  }
}

}  // namespace lockstep
