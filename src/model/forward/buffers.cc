#include "model/forward/buffers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/load/sequence_state.h"

namespace lockstep {
namespace {

// Residual streams whose norm has no weights, and whose mean may be the result; 0: there is one.
size_t averaged_streams(const ModelConfig& config) {
  return config.streams.count > 1 ? static_cast<size_t>(config.streams.count) : 0;
}

class Allocator {
 public:
  Allocator(const ModelMemory& memory, Device& device) : memory_(memory), device_(device) {}

  Result<PassBuffers> run() {
    TRY(allocate_constants());
    TRY(allocate_inputs());
    TRY(allocate_attention());
    TRY(allocate_latents());
    TRY(allocate_compressed());
    TRY(allocate_entries());
    TRY(allocate_ngrams());
    TRY(allocate_delta());
    TRY(allocate_layer_inputs());
    if (config().indexer.chosen > 0) TRY(allocate_index());
    if (memory_.has_draft_layer()) TRY(allocate_draft());
    TRY(allocate_feed_forward());
    TRY(allocate_exchanges());
    return buffers_;
  }

 private:
  const ModelConfig& config() const { return memory_.config; }
  const Cut& cut() const { return memory_.cut; }
  size_t hidden() const { return static_cast<size_t>(config().hidden); }

  // All heads of queries and keys if a layer norms them together, else 0.
  size_t joined_heads() const {
    const bool joins = config().layer(memory_.layers.begin).joins_head_norms;
    return joins ? static_cast<size_t>(config().heads + config().kv_heads) : 0;
  }

  // The most vectors of a token that an exchange sums.
  size_t sums() const {
    int most = 1;
    for (const LayerTraits& layer : config().traits) {
      most = std::max(most, layer.feed_forward_sums());
    }
    return static_cast<size_t>(most);
  }

  Status allocate(size_t elements_per_token, std::initializer_list<Slice*> places) {
    const size_t bytes = elements_per_token * memory_.tokens_max * sizeof(float);
    for (Slice* place : places) *place = {TRY(device_.allocate(bytes, Access::kDevice)), 0};
    return Ok{};
  }
  Status allocate_shared(size_t elements, BufferId& buffer) {
    buffer = TRY(device_.allocate(elements * sizeof(float), Access::kHost));
    return Ok{};
  }

  Status allocate_inputs() {
    PassBuffers& b = buffers_;
    TRY(allocate(1, {&b.positions, &b.list_offsets, &b.page, &b.slot, &b.rows, &b.places,
                     &b.outputs, &b.hidden_outputs, &b.factors}));
    const size_t lists = memory_.window_pages > 0 ? 2 : 1;
    const size_t list_bytes = lists * memory_.page_list_entries_max * sizeof(int32_t);
    b.page_lists = {TRY(device_.allocate(list_bytes, Access::kDevice)), 0};
    TRY(allocate(lists - 1, {&b.window_offsets, &b.window_page}));
    const auto streams = static_cast<size_t>(config().streams.count);
    TRY(allocate(streams * hidden(), {&b.hidden}));
    TRY(allocate(hidden(), {&b.normed, &b.selected}));
    if (streams > 1) TRY(allocate_streams(streams));
    TRY(allocate(static_cast<size_t>(config().other_rotary_dims()), {&b.other_rope}));
    return allocate(static_cast<size_t>(config().head_dim), {&b.rope});
  }

  Status allocate_attention() {
    const auto heads = static_cast<size_t>(cut().heads(memory_.rank).size());
    size_t head_dim = 0, value_dim = 0, key_width = 0;
    for (const LayerTraits& layer : config().traits) {
      if (layer.is_recurrent()) continue;
      const int kv_heads = layer.is_latent() ? config().kv_heads : layer.state.heads;
      const int own = layer.is_compressed() ? 1 : cut().kv_heads(memory_.rank, kv_heads).size();
      head_dim = std::max(head_dim, static_cast<size_t>(layer.head_dim));
      value_dim = std::max(value_dim, static_cast<size_t>(layer.value_dim));
      key_width = std::max(key_width, static_cast<size_t>(own * layer.head_dim));
    }
    TRY(allocate(joined_heads(), {&buffers_.head_squares}));
    TRY(allocate(heads * head_dim, {&buffers_.query}));
    const bool gates = config().attention_layer().gates_output;
    TRY(allocate(gates ? heads * head_dim : 0, {&buffers_.query_gate}));
    TRY(allocate(gates ? 2 * heads * head_dim : 0, {&buffers_.gated_query}));
    TRY(allocate(std::max(heads * value_dim, delta_values()), {&buffers_.mixed}));
    TRY(allocate(key_width, {&buffers_.key}));
    return allocate(config().compressed ? 0 : key_width, {&buffers_.value});
  }

  Status allocate_constants() {
    const size_t bytes = pass_constants(config()).size() * sizeof(float);
    if (bytes == 0) return Ok{};
    const BufferId buffer = TRY(device_.allocate(bytes, Access::kDevice));
    const size_t streams = averaged_streams(config());
    buffers_.embedding_factor = {buffer, 0};
    buffers_.layer_factor = {buffer, 1};
    buffers_.streams_mean = {buffer, 2};
    buffers_.ones = {buffer, 2 + streams};
    return Ok{};
  }

  Status allocate_streams(size_t streams) {
    PassBuffers& b = buffers_;
    TRY(allocate(streams * hidden(), {&b.streams_normed}));
    const auto low_rank = static_cast<size_t>(config().streams.low_rank);
    TRY(allocate(low_rank, {&b.streams_low}));
    TRY(allocate(low_rank > 0 ? streams * hidden() : 0, {&b.streams_mix}));
    return allocate(static_cast<size_t>(config().streams.gates()), {&b.stream_gates});
  }

  Status allocate_latents() {
    const LatentConfig& latent = config().latent;
    const auto heads = static_cast<size_t>(cut().heads(memory_.rank).size());
    const auto rank = static_cast<size_t>(latent.kv_rank), rope = static_cast<size_t>(latent.rope);
    TRY(allocate(static_cast<size_t>(latent.query_rank), {&buffers_.query_latent}));
    TRY(allocate(rank + rope, {&buffers_.kv_latent}));
    TRY(allocate(heads * (rank + rope), {&buffers_.absorbed}));
    return allocate(heads * rank, {&buffers_.mixed_latent});
  }

  Status allocate_compressed() {
    if (!config().compressed) return Ok{};
    PassBuffers& b = buffers_;
    const auto turning = static_cast<size_t>(config().rotary_dims);
    TRY(allocate(1, {&b.last_entry, &b.token_ids}));
    TRY(allocate(turning, {&b.rope_back, &b.other_rope_back}));
    TRY(allocate(static_cast<size_t>(config().experts.chosen), {&b.given}));
    const CompressedConfig& compressed = *config().compressed;
    const int groups = cut().heads(memory_.rank).size() / (config().heads / compressed.groups);
    return allocate(static_cast<size_t>(groups * compressed.group_rank), {&b.group_latents});
  }

  // The index's entries are made in the same places as those of attention, one after the other.
  Status allocate_entries() {
    if (config().pools.empty()) return Ok{};
    PassBuffers& b = buffers_;
    const auto turning = static_cast<size_t>(config().rotary_dims);
    size_t row = 0, entry = 0;
    for (const LayerTraits& layer : config().traits) {
      const StateTraits& state = layer.state;
      row = std::max({row, static_cast<size_t>(state.entries.input_dim()),
                      static_cast<size_t>(state.index.input_dim())});
      entry = std::max(
          {entry, static_cast<size_t>(state.entries.dim), static_cast<size_t>(state.index.dim)});
    }
    TRY(allocate(config().compressed ? row / 2 : 0, {&b.entry_values, &b.entry_gates}));
    TRY(allocate(config().compressed ? row : 0, {&b.entry_inputs}));
    TRY(allocate(entry, {&b.entry_rows}));
    for (size_t kind = 0; kind < config().pools.size(); ++kind) {
      EntryBuffers& entries = b.entries[kind];
      TRY(allocate(1, {&entries.last, &entries.list_offsets, &entries.page, &entries.slot}));
      TRY(allocate(turning, {&entries.rope}));
    }
    return Ok{};
  }

  // Floats of a token's rows.
  size_t ngram_columns() const {
    const bool has_rows = has_ngrams(config(), memory_.layers);
    return has_rows ? static_cast<size_t>(config().ngrams->columns()) : 0;
  }

  Status allocate_ngrams() {
    if (!has_ngrams(config(), memory_.layers)) return Ok{};
    PassBuffers& b = buffers_;
    const auto streams = static_cast<size_t>(config().streams.count);
    TRY(allocate(static_cast<size_t>(config().ngrams->heads), {&b.ngram_rows, &b.ngram_places}));
    TRY(allocate(ngram_columns(), {&b.ngram_embedded}));
    TRY(allocate(streams * hidden(), {&b.ngram_keys}));
    return allocate(hidden(), {&b.ngram_value});
  }

  Status allocate_layer_inputs() {
    const auto all = static_cast<size_t>(config().layer_inputs());
    const bool has_embedding = memory_.layers.begin == 0;
    TRY(allocate(all, {&buffers_.layer_inputs}));
    TRY(allocate(has_embedding ? all : 0, {&buffers_.layer_parts}));
    return allocate(static_cast<size_t>(config().layer_input), {&buffers_.layer_gate});
  }

  size_t delta_values() const {
    if (!config().delta) return 0;
    return static_cast<size_t>(delta_shape(*config().delta, cut(), memory_.rank).channels[2]);
  }

  Status allocate_delta() {
    if (!config().delta) return Ok{};
    const DeltaConfig& delta = *config().delta;
    const DeltaShape shape = delta_shape(delta, cut(), memory_.rank);
    const auto keys = static_cast<size_t>(shape.channels[0]), values = delta_values();
    const auto heads = static_cast<size_t>(shape.value_heads);
    PassBuffers& b = buffers_;
    TRY(allocate(1, {&b.states_from, &b.states_to}));
    TRY(allocate(keys, {&b.delta_query, &b.delta_key}));
    TRY(allocate(values, {&b.delta_value, &b.delta_gate}));
    TRY(allocate(heads, {&b.delta_rate}));
    TRY(allocate(heads * static_cast<size_t>(delta.decays()), {&b.delta_decay}));
    const auto low_rank = static_cast<size_t>(delta.low_rank);
    TRY(allocate(low_rank, {&b.delta_gate_low, &b.delta_decay_low}));
    const bool is_grouped = delta.groups_inputs;
    TRY(allocate(is_grouped ? 2 * (keys + values) : 0, {&b.delta_grouped}));
    TRY(allocate(is_grouped ? 2 * heads : 0, {&b.delta_grouped_rates}));
    const auto key_dim = static_cast<size_t>(delta.key_dim);
    const BufferId norms = TRY(device_.allocate(2 * key_dim * sizeof(float), Access::kDevice));
    b.delta_query_norm = {norms, 0};
    b.delta_key_norm = {norms, key_dim};
    return Ok{};
  }

  // Scores are computed for some tokens at a time if those of all are many. No choice is made where
  // all positions that a sequence may have are chosen.
  Status allocate_index() {
    constexpr size_t kScoreBytesMax = size_t{64} << 20;
    const IndexerConfig& indexer = config().indexer;
    const auto heads = static_cast<size_t>(indexer.heads);
    const auto head_dim = static_cast<size_t>(indexer.head_dim);
    const bool has_pairs = indexer.pool > 1 && config().pools.empty();
    TRY(allocate(config().compressed ? 0 : head_dim, {&buffers_.index_key}));
    TRY(allocate(has_pairs ? head_dim : 0, {&buffers_.index_gate}));
    TRY(allocate(has_pairs ? 2 * head_dim : 0, {&buffers_.index_pair}));
    const size_t pages = std::min(memory_.page_list_entries_max,
                                  static_cast<size_t>(pages_for(config().positions_max)));
    const size_t positions = pages * kPagePositions;
    if (positions <= static_cast<size_t>(indexer.first_choosing())) return Ok{};
    const size_t keys = positions / static_cast<size_t>(indexer.pool);
    const size_t fitting = std::max<size_t>(1, kScoreBytesMax / (keys * sizeof(float)));
    const size_t tokens = std::min(memory_.tokens_max, fitting);
    buffers_.index_pages = static_cast<int>(pages);
    buffers_.index_tokens = static_cast<int>(tokens);
    TRY(allocate(heads * head_dim, {&buffers_.index_query}));
    TRY(allocate(heads, {&buffers_.index_weights}));
    TRY(allocate(pages * kMaskWordsOfPage, {&buffers_.mask}));
    const size_t bytes = tokens * keys * sizeof(float);
    buffers_.index_scores = {TRY(device_.allocate(bytes, Access::kDevice)), 0};
    return Ok{};
  }

  Status allocate_draft() {
    PassBuffers& b = buffers_;
    const auto inputs = static_cast<size_t>(config().draft_inputs());
    TRY(allocate(1, {&b.draft_rows}));
    TRY(allocate(inputs * hidden(), {&b.draft_input}));
    if (config().guesses_blocks()) {
      TRY(allocate(1, {&b.block_end}));
      TRY(allocate(static_cast<size_t>(config().draft_block->rank), {&b.draft_previous}));
      return allocate(inputs * hidden(), {&b.draft_hidden});
    }
    const auto continued = static_cast<size_t>(config().draft_streams());
    return allocate(2 * continued * hidden(), {&b.draft_hidden});
  }

  Status allocate_feed_forward() {
    PassBuffers& b = buffers_;
    const int rank = memory_.rank;
    int ffn = cut().shared_ffn(rank).size();
    for (const LayerTraits& layer : config().traits) {
      ffn = std::max(ffn, cut().ffn(rank, layer.ffn).size());
    }
    TRY(allocate(static_cast<size_t>(ffn), {&b.gate, &b.up}));
    const ExpertsConfig& experts = config().experts;
    const auto chosen = static_cast<size_t>(experts.chosen);
    const size_t expert_ffn = chosen * static_cast<size_t>(cut().expert_ffn(rank).size());
    TRY(allocate(static_cast<size_t>(experts.count), {&b.scores}));
    TRY(allocate(chosen, {&b.chosen, &b.chosen_weights}));
    TRY(allocate(experts.shared_ffn > 0 ? 1 : 0, {&b.shared_score}));
    TRY(allocate(expert_ffn, {&b.expert_hidden}));
    const size_t subtrees = cut().expert_shares().nodes(rank).size();
    TRY(allocate(sums() > 1 && subtrees > 1 ? subtrees * hidden() : 0, {&b.product}));
    return allocate(2 * expert_ffn, {&b.expert_scratch});
  }

  // Exchanges need memory that the host can access.
  Status allocate_exchanges() {
    const int rank = memory_.rank;
    const size_t tokens = memory_.tokens_max;
    const size_t subtrees = std::max(
        {cut().head_shares().nodes(rank).size(), cut().ffn_shares().nodes(rank).size(),
         cut().expert_shares().nodes(rank).size(), cut().delta_shares().nodes(rank).size()});
    const size_t summed = sums() * hidden();  // floats per token
    TRY(allocate_shared(subtrees * tokens * summed, buffers_.partials));
    TRY(allocate_shared(subtrees * tokens / 2 * summed, buffers_.second_partials));
    TRY(allocate_shared(tokens / 2 * summed, buffers_.second_sum));
    const auto looked_up = static_cast<size_t>(config().embedded()) + ngram_columns();
    const int latents = cut().cuts_latents() ? config().latent.rows() : 0;
    const size_t exchanged =  // floats per token
        std::max({summed, static_cast<size_t>(latents), joined_heads(),
                  static_cast<size_t>(config().passed()), looked_up});
    TRY(allocate_shared(tokens * exchanged, buffers_.sum));
    const int vocabulary = memory_.has_head() ? cut().vocabulary(rank).size() : 0;
    return allocate_shared(tokens * static_cast<size_t>(vocabulary), buffers_.logits);
  }

  const ModelMemory& memory_;
  Device& device_;
  PassBuffers buffers_;
};

}  // namespace

std::vector<float> pass_constants(const ModelConfig& config) {
  const size_t streams = averaged_streams(config);
  const bool are_needed =
      config.embedding_factor != 1 || config.attention_layer().norms_values || streams > 0;
  if (!are_needed) return {};
  std::vector<float> values{config.embedding_factor,
                            std::sqrt(static_cast<float>(config.layer_input) / 2)};
  values.resize(2 + streams, 1.0f / static_cast<float>(config.streams.count));
  size_t ones = streams * static_cast<size_t>(config.hidden);
  for (const LayerTraits& layer : config.traits) {
    ones = std::max(ones, static_cast<size_t>(layer.head_dim));
  }
  values.resize(values.size() + ones, 1.0f);
  return values;
}

void EntryBuffers::skip(int entries, int rotary_dims) {
  const auto skipped = static_cast<size_t>(entries);
  for (Slice* place : {&last, &list_offsets, &page, &slot}) place->offset += skipped;
  rope.offset += skipped * static_cast<size_t>(rotary_dims);
}

Result<PassBuffers> allocate_buffers(const ModelMemory& memory, Device& device) {
  return Allocator(memory, device).run();
}

size_t StateShape::bytes(KvKind kind) const {
  return static_cast<size_t>(heads.size()) * page_head_stride(kind, key_dim);
}

StateShape state_shape(const StateTraits& state, const Cut& cut, int rank) {
  const Range heads = state.is_shared ? Range{0, state.heads} : cut.kv_heads(rank, state.heads);
  return {heads, state.key_dim, state.value_dim};
}

namespace {

// The pages, or the window pages: their memory, and how long one is with the parts that have their
// places in it.
struct PageRun {
  BufferId buffer{};
  size_t stride = 0;  // elements

  // The next part, of which keys and values lie `apart` bytes from each other.
  LayerPages place(KvKind kind, size_t bytes, size_t apart = 0) {
    const Slice keys{.offset = stride};
    const Slice values{.offset = stride + apart / Slice::kElementBytes};
    stride += bytes / Slice::kElementBytes;  // no remainder
    return {.kind = kind, .keys = keys, .values = values};
  }
  // One head of keys alone.
  LayerPages place_keys(KvKind kind, int dim, size_t bytes) {
    LayerPages keys = place(kind, bytes);
    keys.head_dim = dim;
    keys.kv_heads = 1;
    return keys;
  }
  // The same of rows, which are stored as values are.
  LayerPages place_rows(KvKind kind, int dim, size_t bytes) {
    LayerPages rows = place_keys(kind, dim, bytes);
    rows.value_dim = dim;
    return rows;
  }
  // Once all parts have their places and the memory is there.
  void settle(LayerPages& part) const {
    part.keys.buffer = part.values.buffer = buffer;
    part.page_stride = stride;
  }
};

// `inputs` has what only the next positions need.
void place_entries(const EntryShape& entries, KvKind kind, size_t layer, StateBuffer& state,
                   PageRun& inputs, PageRun& pages) {
  if (entries.dim == 0) return;
  state.entry_inputs[layer] = inputs.place_rows(kind, entries.input_dim(), entries.inputs(kind));
  state.entries[layer] = pages.place_rows(KvKind::kF32, entries.dim, entries.entries());
}

void place_index(const IndexShape& index, KvKind kind, size_t layer, StateBuffer& state,
                 PageRun& inputs, PageRun& pages) {
  if (index.dim == 0) return;
  const bool has_pools = index.has_pools();
  if (has_pools) {
    const size_t bytes = index.inputs(kind);
    state.index_inputs[layer] = index.are_rows()
                                    ? inputs.place_rows(kind, index.input_dim(), bytes)
                                    : inputs.place_keys(kind, index.input_dim(), bytes);
  }
  const KvKind of_keys = has_pools ? KvKind::kF32 : kind;
  state.indexes[layer] = pages.place_keys(of_keys, index.dim, index.keys(kind));
}

void place_layer(const ModelMemory& memory, size_t layer, StateBuffer& state, PageRun& own,
                 PageRun& pages) {
  const StateTraits& traits = memory.config.traits[layer].state;
  const StateShape shape = state_shape(traits, memory.cut, memory.rank);
  const size_t bytes = shape.bytes(memory.kv);
  LayerPages& heads = state.layers[layer];
  heads = own.place(memory.kv, (traits.is_rows ? 1 : 2) * bytes, traits.is_rows ? 0 : bytes);
  heads.head_dim = shape.key_dim;
  heads.value_dim = shape.value_dim;
  heads.kv_heads = shape.heads.size();
  place_entries(traits.entries, memory.kv, layer, state, own, pages);
  place_index(traits.index, memory.kv, layer, state, own, pages);
}

}  // namespace

Result<StateBuffer> allocate_state(const ModelMemory& memory, Device& device) {
  StateBuffer state;
  state.layers.resize(memory.config.traits.size());
  state.indexes.resize(state.layers.size());
  state.index_inputs.resize(state.layers.size());
  state.entries.resize(state.layers.size());
  state.entry_inputs.resize(state.layers.size());
  PageRun pages, windows;
  const int end = memory.config.end_with_draft(memory.layers.end);
  for (int layer = memory.layers.begin; layer < end; ++layer) {
    if (!memory.config.layer(layer).has_state()) continue;
    PageRun& own = memory.has_window(layer) ? windows : pages;
    place_layer(memory, static_cast<size_t>(layer), state, own, pages);
  }
  state.page_bytes = pages.stride * Slice::kElementBytes;
  state.window_bytes = windows.stride * Slice::kElementBytes;
  const uint64_t bytes = state.page_bytes * memory.pages;
  const uint64_t of_windows = state.window_bytes * memory.window_pages;
  state.bytes = bytes + of_windows;
  pages.buffer = TRY(device.allocate(bytes, Access::kDevice));
  windows.buffer = TRY(device.allocate(of_windows, Access::kDevice));
  for (int layer = memory.layers.begin; layer < end; ++layer) {
    const auto index = static_cast<size_t>(layer);
    const PageRun& own = memory.has_window(layer) ? windows : pages;
    for (auto* parts : {&state.layers, &state.entry_inputs, &state.index_inputs}) {
      own.settle((*parts)[index]);
    }
    for (auto* parts : {&state.entries, &state.indexes}) pages.settle((*parts)[index]);
    const int from = memory.config.layer(layer).state_layer;
    if (from >= 0) state.layers[index] = state.layers[static_cast<size_t>(from)];
  }
  return state;
}

size_t part_bytes(const ModelMemory& memory, StatePart part, int layer, int heads) {
  const LayerTraits& traits = memory.config.layer(layer);
  if (traits.is_recurrent() || !traits.has_state()) return 0;
  const StateTraits& state = traits.state;
  const size_t windows = memory.has_window(layer) ? state.window_bytes(memory.kv, heads) : 0;
  return part == StatePart::kWindow ? windows : state.bytes(memory.kv, heads) - windows;
}

int block_heads(const ModelMemory& memory, StatePart part) {
  int most = 0;
  for (int layer = 0; layer < memory.config.end_with_draft(memory.config.layers); ++layer) {
    if (part_bytes(memory, part, layer, 1) == 0) continue;
    most = std::max(most, memory.config.layer(layer).state.heads);
  }
  return most;
}

PageShape part_shape(const ModelMemory& memory, StatePart part) {
  const int end = memory.config.end_with_draft(memory.layers.end);
  PageShape shape;
  for (int layer = 0; layer < memory.config.end_with_draft(memory.config.layers); ++layer) {
    const size_t bytes = part_bytes(memory, part, layer, 1);
    if (bytes == 0) continue;
    shape.block_bytes = std::max(shape.block_bytes, bytes);
    shape.layer_begin += layer < memory.layers.begin ? 1 : 0;
    shape.layer_end += layer < end ? 1 : 0;
  }
  StateTraits widest = memory.config.attention_layer().state;
  widest.heads = block_heads(memory, part);
  const Range heads = state_shape(widest, memory.cut, memory.rank).heads;
  shape.head_begin = heads.begin;
  shape.head_end = heads.end;
  return shape;
}

// GPUs count them in 32 bits. Published models have less than 200 MB.
constexpr uint64_t kRecurrentBytesMax = uint64_t{1} << 31;

DeltaShape delta_shape(const DeltaConfig& delta, const Cut& cut, int rank) {
  DeltaShape shape;
  shape.key_heads = cut.delta_heads(rank).size();
  shape.value_heads = shape.key_heads * delta.values_per_key();
  const int keys = shape.key_heads * delta.key_dim;
  shape.channels = {keys, keys, shape.value_heads * delta.value_dim};
  for (size_t i = 0; i < shape.channels.size(); ++i) {
    shape.past[i] = shape.heads_at;
    shape.heads_at += static_cast<size_t>((delta.taps - 1) * shape.channels[i]);
  }
  shape.size = delta.state_elements(shape.key_heads);
  return shape;
}

Result<RecurrentBuffer> allocate_recurrent(const ModelMemory& memory, Device& device) {
  RecurrentBuffer states;
  states.layers.resize(memory.config.traits.size());
  if (!memory.config.delta) return states;
  const DeltaShape shape = delta_shape(*memory.config.delta, memory.cut, memory.rank);
  for (int layer = memory.layers.begin; layer < memory.layers.end; ++layer) {
    if (!memory.config.layer(layer).is_recurrent()) continue;
    states.layers[static_cast<size_t>(layer)].offset = states.stride;
    states.stride += shape.size;
  }
  if (has_ngrams(memory.config, memory.layers)) {
    states.ngrams.offset = states.stride;
    states.stride += static_cast<size_t>(memory.config.ngrams->past()) *
                     static_cast<size_t>(memory.config.stream_columns());
  }
  const uint64_t of_sequence = states.stride * Slice::kElementBytes;
  if (of_sequence > kRecurrentBytesMax) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("the recurrent state of a sequence takes {} bytes on a rank, at most {} "
                    "are possible: use more ranks or stages",
                    of_sequence, kRecurrentBytesMax)};
  }
  states.bytes = of_sequence * memory.states;
  const BufferId buffer = TRY(device.allocate(states.bytes, Access::kDevice));
  for (Slice& layer : states.layers) layer.buffer = buffer;
  states.ngrams.buffer = buffer;
  return states;
}

bool has_ngrams(const ModelConfig& config, Range layers) {
  return config.ngrams && layers.begin <= config.ngrams->layer && config.ngrams->layer < layers.end;
}

int ngram_blocks(const ModelConfig& config) {
  if (!config.ngrams) return 0;
  const auto channels = static_cast<size_t>(config.stream_columns());
  const size_t block = config.delta->state_elements(1);
  return static_cast<int>((config.ngrams->state_elements(channels) + block - 1) / block);
}

PageShape recurrent_shape(const ModelConfig& config, const Cut& cut, int rank, Range layers) {
  if (!config.delta) return {};
  const Range heads = cut.delta_heads(rank);
  const int first = ngram_blocks(config);
  PageShape shape{.layer_begin = first + config.recurrent_layers(0, layers.begin),
                  .layer_end = first + config.recurrent_layers(0, layers.end),
                  .head_begin = heads.begin,
                  .head_end = heads.end,
                  .block_bytes = config.delta->state_elements(1) * Slice::kElementBytes};
  if (!has_ngrams(config, layers)) return shape;
  shape.layer_begin = 0;
  if (heads.size() > 0) return shape;
  shape.layer_end = first;
  shape.head_begin = 0;
  shape.head_end = 1;
  return shape;
}

}  // namespace lockstep
