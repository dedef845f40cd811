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
  return lockstep::recurrent_shape(config_, cut_, rank_, layers_);
}

Status Model::read_state(int32_t number, std::span<std::byte> bytes) {
  const PageShape parts = recurrent_shape();
  LOCKSTEP_CHECK(number >= 0 && number < limits_.states);
  LOCKSTEP_CHECK(bytes.size() == parts.page_bytes());
  TRY(device_.wait());
  if (has_ngrams()) {
    read_ngram_state(number);
    visit_ngram_blocks(parts, [&](std::span<float> block) {
      const auto all = std::as_bytes(block);
      std::copy(all.begin(), all.end(), bytes.begin());
      bytes = bytes.subspan(all.size());
    });
  }
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
  const PageShape parts = recurrent_shape();
  LOCKSTEP_CHECK(number >= 0 && number < limits_.states);
  LOCKSTEP_CHECK(bytes.size() == parts.page_bytes());
  if (has_ngrams()) {
    visit_ngram_blocks(parts, [&](std::span<float> block) {
      const auto all = std::as_writable_bytes(block);
      std::copy_n(bytes.begin(), all.size(), all.begin());
      bytes = bytes.subspan(all.size());
    });
    write_ngram_state(number);
  }
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

// Calls `visit` with the part of `ngram_state_` that each block has, in the order of PageShape.
template <class Visit>
void Model::visit_ngram_blocks(const PageShape& shape, Visit visit) {
  const size_t floats = shape.block_bytes / sizeof(float);
  for (int block = 0; block < ngram_blocks(config_); ++block) {
    for (int head = 0; head < shape.heads(); ++head) {
      visit(std::span(ngram_state_).subspan(static_cast<size_t>(block) * floats, floats));
    }
  }
}

void Model::reserve_ngram_state() {
  ngram_state_.assign(static_cast<size_t>(ngram_blocks(config_)) * config_.delta->state_elements(1),
                      0.0f);
}

// Past inputs, and after them the last tokens, which floats hold exactly.
std::pair<Slice, size_t> Model::place_of_ngrams(int32_t number) const {
  const auto channels = static_cast<size_t>(config_.stream_columns());
  Slice place = recurrent_.ngrams;
  place.offset += static_cast<size_t>(number) * recurrent_.stride;
  return {place, static_cast<size_t>(config_.ngrams->past()) * channels};
}

void Model::read_ngram_state(int32_t number) {
  const auto [place, count] = place_of_ngrams(number);
  device_.read(place, std::as_writable_bytes(std::span(ngram_state_).first(count)));
  const auto before = static_cast<size_t>(config_.ngrams->size - 1);
  const auto first = ngrams_.last_tokens.begin() + number * static_cast<int32_t>(before);
  std::transform(first, first + static_cast<ptrdiff_t>(before),
                 ngram_state_.begin() + static_cast<ptrdiff_t>(count),
                 [](int32_t token) { return static_cast<float>(token); });
}

void Model::write_ngram_state(int32_t number) {
  const auto [place, count] = place_of_ngrams(number);
  device_.write(place, std::as_bytes(std::span<const float>(ngram_state_).first(count)));
  const auto before = static_cast<size_t>(config_.ngrams->size - 1);
  const auto first = ngram_state_.begin() + static_cast<ptrdiff_t>(count);
  std::transform(first, first + static_cast<ptrdiff_t>(before),
                 ngrams_.last_tokens.begin() + number * static_cast<int32_t>(before),
                 [](float token) { return static_cast<int32_t>(token); });
}

}  // namespace lockstep
