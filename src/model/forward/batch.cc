#include "model/forward/batch.h"

#include <algorithm>

#include "kernels/kernels.h"
#include "model/load/sequence_state.h"

namespace lockstep {
namespace {

bool within(int32_t value, size_t end) {
  return value >= 0 && static_cast<size_t>(value) < end;
}

bool has_room(const Batch& batch, const BatchLimits& limits) {
  return batch.tokens.size() <= static_cast<size_t>(limits.tokens_max) &&
         batch.page_lists.size() <= static_cast<size_t>(limits.page_list_entries_max) &&
         batch.outputs.size() <= batch.tokens.size() &&
         batch.hidden_outputs.size() <= batch.tokens.size() &&
         batch.positions.size() == batch.tokens.size() &&
         batch.states_from.size() == (limits.states > 0 ? batch.tokens.size() : 0) &&
         batch.states_to.size() == batch.states_from.size() &&
         batch.window_lists.size() <= static_cast<size_t>(limits.page_list_entries_max) &&
         batch.window_offsets.size() == (limits.window_pages > 0 ? batch.tokens.size() : 0) &&
         batch.list_offsets.size() == batch.tokens.size();
}

// The lists of window pages follow the others on the device: no list may begin before these.
bool are_windows_sound(const Batch& batch, const BatchLimits& limits) {
  for (size_t i = 0; i < batch.window_offsets.size(); ++i) {
    const int64_t begin = batch.window_offsets[i];
    const int64_t first = begin + first_window_page(batch.positions[i], limits.reach);
    const int64_t last = begin + batch.positions[i] / kPagePositions;
    if (first < 0 || last >= static_cast<int64_t>(batch.window_lists.size())) return false;
    if (begin + static_cast<int64_t>(batch.page_lists.size()) < 0) return false;
  }
  return std::all_of(batch.window_lists.begin(), batch.window_lists.end(), [&](int32_t page) {
    return within(page, static_cast<size_t>(limits.window_pages));
  });
}

bool is_within_limits(const Batch& batch, const BatchLimits& limits) {
  if (!has_room(batch, limits)) return false;
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    if (!within(batch.tokens[i], static_cast<size_t>(limits.vocab_size))) return false;
    if (!within(batch.positions[i], static_cast<size_t>(limits.positions_max))) return false;
    if (batch.list_offsets[i] < 0) return false;
    const int64_t entry = int64_t{batch.list_offsets[i]} + batch.positions[i] / kPagePositions;
    if (entry >= static_cast<int64_t>(batch.page_lists.size())) return false;
  }
  for (size_t i = 0; i < batch.states_to.size(); ++i) {
    // A sequence begins without a state, and only then.
    const int32_t from = batch.states_from[i];
    const bool is_sound =
        batch.positions[i] == 0 ? from == -1 : within(from, static_cast<size_t>(limits.states));
    if (!is_sound || !within(batch.states_to[i], static_cast<size_t>(limits.states))) return false;
  }
  const auto is_page = [&](int32_t page) {
    return within(page, static_cast<size_t>(limits.pages));
  };
  const auto is_token = [&](int32_t index) { return within(index, batch.tokens.size()); };
  if (!std::all_of(batch.page_lists.begin(), batch.page_lists.end(), is_page)) return false;
  for (const auto* outputs : {&batch.outputs, &batch.hidden_outputs}) {
    if (!std::all_of(outputs->begin(), outputs->end(), is_token)) return false;
  }
  return are_windows_sound(batch, limits);
}

}  // namespace

void Batch::clear() {
  tokens.clear();
  positions.clear();
  list_offsets.clear();
  states_from.clear();
  states_to.clear();
  page_lists.clear();
  window_lists.clear();
  window_offsets.clear();
  outputs.clear();
  hidden_outputs.clear();
}

void Batch::reserve(const BatchLimits& limits) {
  for (auto* each : {&tokens, &positions, &list_offsets, &outputs, &hidden_outputs}) {
    each->reserve(static_cast<size_t>(limits.tokens_max));
  }
  for (auto* each : {&states_from, &states_to}) {
    each->reserve(static_cast<size_t>(limits.states > 0 ? limits.tokens_max : 0));
  }
  page_lists.reserve(static_cast<size_t>(limits.page_list_entries_max));
  if (limits.window_pages == 0) return;
  window_lists.reserve(static_cast<size_t>(limits.page_list_entries_max));
  window_offsets.reserve(static_cast<size_t>(limits.tokens_max));
}

Status check_batch(const Batch& batch, const BatchLimits& limits) {
  if (is_within_limits(batch, limits)) return Ok{};
  return Error{ErrorCode::kCorrupt, "a batch exceeds the model's limits"};
}

}  // namespace lockstep
