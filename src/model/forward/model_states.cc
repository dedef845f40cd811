// Copies states of recurrent layers between a device and the host.
#include <algorithm>

#include "base/check.h"
#include "model/forward/model.h"

namespace lockstep {
namespace {

// Calls `visit` with the place of each run of floats in a layer's state, and its size, in the order
// of PageShape: for every key head its past inputs of the three convolutions, then the states of
// its value heads.
template <class Visit>
void visit_runs(const DeltaConfig& delta, const DeltaShape& shape, Visit visit) {
  const auto heads = static_cast<size_t>(shape.key_heads);
  const size_t of_head = (shape.size - shape.heads_at) / std::max<size_t>(heads, 1);
  for (size_t head = 0; head < heads; ++head) {
    for (size_t part = 0; part < shape.channels.size(); ++part) {
      const auto channels = static_cast<size_t>(shape.channels[part]);
      const size_t columns = channels / heads;
      for (int tap = 0; tap + 1 < delta.taps; ++tap) {
        const size_t row = shape.past[part] + static_cast<size_t>(tap) * channels;
        visit(row + head * columns, columns);
      }
    }
    visit(shape.heads_at + head * of_head, of_head);
  }
}

}  // namespace

// Calls `visit` with the place of each recurrent layer's part of a state.
template <class Visit>
void Model::visit_states(int32_t number, Visit visit) const {
  for (int layer = layers_.begin; layer < layers_.end; ++layer) {
    if (!config_.layer(layer).is_recurrent()) continue;
    const Slice& first = recurrent_.layers[static_cast<size_t>(layer)];
    visit(Slice{first.buffer, first.offset + static_cast<size_t>(number) * recurrent_.stride});
  }
}

PageShape Model::recurrent_shape() const {
  if (!config_.delta) return {};
  const Range heads = cut_.delta_heads(rank_);
  return {.layer_begin = config_.recurrent_layers(0, layers_.begin),
          .layer_end = config_.recurrent_layers(0, layers_.end),
          .head_begin = heads.begin,
          .head_end = heads.end,
          .block_bytes = config_.delta->state_elements(1) * Slice::kElementBytes};
}

Status Model::read_state(int32_t number, std::span<std::byte> bytes) {
  LOCKSTEP_CHECK(number >= 0 && number < limits_.states);
  LOCKSTEP_CHECK(bytes.size() == recurrent_shape().page_bytes());
  TRY(device_.wait());
  const DeltaShape shape = delta_shape(*config_.delta, cut_, rank_);
  visit_states(number, [&](Slice from) {
    device_.read(from, std::as_writable_bytes(std::span(layer_state_)));
    visit_runs(*config_.delta, shape, [&](size_t at, size_t count) {
      const auto run = std::as_bytes(std::span(layer_state_).subspan(at, count));
      std::copy(run.begin(), run.end(), bytes.begin());
      bytes = bytes.subspan(run.size());
    });
  });
  return Ok{};
}

void Model::write_state(int32_t number, std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(number >= 0 && number < limits_.states);
  LOCKSTEP_CHECK(bytes.size() == recurrent_shape().page_bytes());
  const DeltaShape shape = delta_shape(*config_.delta, cut_, rank_);
  visit_states(number, [&](Slice to) {
    visit_runs(*config_.delta, shape, [&](size_t at, size_t count) {
      const auto run = std::as_writable_bytes(std::span(layer_state_).subspan(at, count));
      std::copy_n(bytes.begin(), run.size(), run.begin());
      bytes = bytes.subspan(run.size());
    });
    device_.write(to, std::as_bytes(std::span(layer_state_)));
  });
}

}  // namespace lockstep
