// Model: one rank's weights, state and buffers on a device, and the forward pass over them. One
// thread. Every rank of the group calls forward() with the same batch. Nothing is allocated after
// load.
//
// A pass has 2 * layers + 2 exchanges: the embeddings, two sums per layer, and the sampler's (not
// made here); 3 * layers + 2 if the projections to the latents are cut, or if several ranks norm
// their heads together; 4 * layers + 2 if a long batch is split in halves
// (model/forward/overlap.h). The whole pass is queued and then run; each exchange is a turn of the
// host (Device::run), but for the sampler's, which follows the run. A pass of the draft layer has
// three exchanges, and its guesses one; a block two for each of its layers and one for its
// embeddings.
//
// A pipeline stage has some of the layers: the first stage also has the embeddings, the last one
// the final norm and the logits. The others receive the hidden state from the previous stage and
// pass theirs to the next, instead of these exchanges.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/progress.h"
#include "collective/group/group.h"
#include "device/device.h"
#include "model/config/config.h"
#include "model/forward/batch.h"
#include "model/forward/buffers.h"
#include "model/forward/gathered_pair.h"
#include "model/forward/overlap.h"
#include "model/load/cut.h"
#include "model/load/latent_cut.h"
#include "model/load/page_shape.h"
#include "model/load/weights.h"
#include "model/ngrams/ngram_files.h"
#include "model/options/kv_kind.h"
#include "model/options/run_limits.h"

namespace lockstep {

struct ModelOptions {
  ModelConfig config;
  std::shared_ptr<const WeightSource> source;
  std::vector<double> shares;            // one per rank of the group
  std::optional<Range> layers;           // of this stage, at least one; not set: all
  int tokens_max = kBatchTokensDefault;  // per batch
  int pages = 0;                         // of sequence state
  // At most `pages`; not used if the model needs none. 0: the pages have everything.
  int window_pages = 0;
  int states = 0;          // of recurrent layers; not used if the model has none
  KvKind kv = kKvDefault;  // in which it is stored
  int page_list_entries_max = 0;
  LinkKind link = LinkKind::kShm;  // the slowest between two ranks
  LatentCut latent_cut = LatentCut::kAuto;
  Overlap overlap = Overlap::kAuto;
  // Called after each layer, for work that must continue while a stage computes. May be empty.
  std::function<Status()> between_layers;
  Progress* progress = nullptr;  // gets the bytes of weights while they are read
};

// The requested results of a batch; valid until the next forward().
struct ModelOutputs {
  Range vocabulary;               // the token ids of this rank
  std::span<const float> logits;  // (outputs, vocabulary.size())
  // (hidden_outputs, hidden) after the final norm, the same on every rank.
  std::span<const float> hidden;
  // Instead of both, on any stage but the last, for the next one: (tokens, streams, hidden), and
  // then the tokens' inputs of all layers, if the model has these.
  std::span<const float> passed_on;
};

class Model {
 public:
  // `group` and `device` must outlive the model.
  static Result<std::unique_ptr<Model>> load(const ModelOptions& options, Group& group,
                                             Device& device);

  const ModelConfig& config() const { return config_; }
  const Cut& cut() const { return cut_; }
  const Weights& weights() const { return weights_; }
  const BatchLimits& limits() const { return limits_; }
  uint64_t state_bytes() const { return state_.bytes + recurrent_.bytes; }
  bool has_embedding() const { return layers_.begin == 0; }
  bool has_head() const { return layers_.end == config_.layers; }
  bool has_draft_layer() const { return has_head() && config_.has_draft_layer(); }

  PageShape page_shape(StatePart part) const;
  // Copy this rank's part of a page of state, or of a window page, by its number, in the order of
  // its shape: out after the passes that computed it, in before the passes that use it.
  Status read_page(StatePart part, int32_t number, std::span<std::byte> bytes);
  void write_page(StatePart part, int32_t number, std::span<const std::byte> bytes);
  // The same for its part of a state of the recurrent layers, by the state's number. Without blocks
  // if the rank has no such layers, or no heads of them.
  PageShape recurrent_shape() const;
  Status read_state(int32_t number, std::span<std::byte> bytes);
  void write_state(int32_t number, std::span<const std::byte> bytes);

  // `passed`: what the previous stage passed on; empty in the first stage. Errors come from
  // check_batch(), the device, the exchanges and between_layers; after one of the last two the
  // group is broken.
  Result<ModelOutputs> forward(const Batch& batch, std::span<const float> passed = {});
  // A pass of the draft layer, which the model must have: logits of the tokens after those of the
  // batch, for its outputs.
  Result<ModelOutputs> draft(const DraftBatch& drafts);
  // The same if it guesses blocks (ModelConfig::guesses_blocks): keeps the keys of the batch's
  // positions and computes a block after each output. Its logits, (size, outputs), lack what
  // follows from the tokens before them. At most one output of a sequence, and so
  // many that a batch holds all blocks and one row more of each.
  Result<ModelOutputs> draft_blocks(const DraftBatch& drafts);
  // The logits of guess `number` of these blocks, complete, after these tokens: one for each
  // output.
  Result<ModelOutputs> follow_in_blocks(int number, std::span<const int32_t> previous);

 private:
  // The tokens of a batch that go through a layer together: all of them or a half. Values kept
  // per token have their place after those of earlier tokens; the other buffers are shared in turn.
  struct BatchHalf : PassBuffers {
    int tokens = 0;
    int streams = 1;       // of the residual, side by side in `hidden`
    int block = 0;         // the tokens of a draft block, which all see each other; 0: it has none
    bool has_sum = false;  // an exchange holds sums that are not yet in the hidden state
  };

  using PairOfRank = GatheredPair (*)(const Cut& cut, int rank, int tokens);
  // A place of all ranks' parts, side by side, of which the rows of tokens are `stride` apart.
  struct PairPlace {
    Slice to;
    int stride = 0;
  };
  // The work of the host in a turn.
  struct Turn {
    enum class Kind : uint8_t {
      kGatherEmbeddings,
      kGatherPair,
      kSum,
      kBetweenLayers,
    };
    Kind kind{};
    BatchHalf* half = nullptr;           // of a pair or a sum
    PairOfRank pair = nullptr;           // of a pair
    const LeafShares* shares = nullptr;  // of a sum
    int vectors = 1;                     // of a token, in a sum
    bool finishes = false;               // this sum is complete when the turn ends
  };

  Model(const ModelOptions& options, Cut cut, Group& group, Device& device, BatchLimits limits);
  Status allocate();
  void write_constants();
  void write_index_weights();

  ModelMemory memory() const;
  // In model_pages.cc.
  template <class Visit>
  void visit_pieces(StatePart part, int32_t number, Visit visit) const;
  bool has_page(StatePart part, int32_t number) const;
  // In model_states.cc.
  template <class Visit>
  void visit_states(int32_t number, Visit visit) const;
  template <class Visit>
  void visit_ngram_blocks(const PageShape& shape, Visit visit);
  std::pair<Slice, size_t> place_of_ngrams(int32_t number) const;
  void reserve_ngram_state();
  void read_ngram_state(int32_t number);
  void write_ngram_state(int32_t number);
  void write_batch(const Batch& batch);
  void write_windows(const Batch& batch);
  void write_angles(const Batch& batch);
  void write_rope(std::span<const int32_t> positions, std::span<const double> frequencies,
                  Slice table);
  void write_rope_back(Slice table);  // of what write_rope() wrote last
  // Leaves the embeddings at `to`, (tokens, hidden).
  void embed(const Batch& batch, Slice to);
  // In model_forward_streams.cc.
  void embed_streams(const Batch& batch);
  void repeat_in_streams(Slice rows, int tokens, Slice to);  // one of a token in all its streams
  struct GateRoles;
  void gate_streams(const LayerWeights& weights, const GateRoles& roles, int rounds, int tokens,
                    const PassBuffers& at);
  void collapse_streams(Slice weights, int stride, int tokens, const PassBuffers& at);
  void norm_streams(int layer, Role norm, BatchHalf& half);
  void update_streams(const BatchHalf& half);
  void join_streams(const LayerWeights& weights, int tokens);
  struct MixRoles;
  void mix_streams(const LayerWeights& weights, const MixRoles& roles, int tokens,
                   const PassBuffers& at);
  void norm_each_stream(Slice weight, int tokens, Slice x, Slice y);
  // In model_forward_ngrams.cc.
  bool has_ngrams() const;  // this stage
  Status open_ngram_files(std::shared_ptr<const WeightSource> source);
  void reserve_ngrams();
  void list_ngrams(const Batch& batch);
  void place_ngrams(int rank, int unit, int32_t& next);
  void write_ngrams();
  void look_up_ngrams();
  void gather_ngrams(int tokens, int unit);
  void add_ngrams(int layer, BatchHalf& half);
  // In model_forward_layer_inputs.cc.
  void make_layer_inputs(int tokens);
  void add_layer_input(int layer, BatchHalf& half);
  // In model_forward_draft.cc.
  BatchLimits draft_limits() const;
  Status check_drafts(const DraftBatch& drafts) const;
  void keep_hidden(int tokens);
  void queue_draft_input(int tokens);
  void queue_draft_streams(const Batch& batch);
  void norm_draft_streams(Slice weight, int tokens);
  void queue_draft_outputs(const Batch& batch);
  // In model_forward_blocks.cc.
  void keep_tap(int layer, BatchHalf& half);
  int block_outputs_max() const;
  void begin_whole(const Batch& batch);
  void queue_block_keys(const DraftBatch& drafts);
  void list_blocks(const Batch& batch);
  void queue_blocks();
  void queue_layer(int layer);
  void queue_turn(const Turn& turn);
  Status take_turn(const Turn& turn);
  Status run();  // what is queued, with its turns
  // Completes the exchange buffer, where the floats of rank r end at ends[r].
  Status gather_parts(std::span<const size_t> ends);
  Status gather_pair(PairOfRank pair, int tokens);
  // Queues the exchange of the pairs of all ranks, and their copies to these places.
  void exchange_pair(PairOfRank pair, BatchHalf& half, PairPlace first, PairPlace second);
  void make_halves(int tokens, int streams);
  void make_whole(int tokens, int streams);  // one half has all
  BatchHalf half_of(int begin, int tokens, int streams) const;
  // Whether a part of the layer's state is in window pages; and where the operations on this part
  // find its pages: those of the tokens, and their lists.
  bool has_window(int layer) const { return memory().has_window(layer); }
  struct PagePlaces {
    Slice page;
    Slice list_offsets;
  };
  PagePlaces places_of(int layer, const BatchHalf& half) const {
    if (has_window(layer)) return {half.window_page, half.window_offsets};
    return {half.page, half.list_offsets};
  }
  std::span<BatchHalf> halves() { return std::span(halves_).first(half_count_); }
  void attention(int layer, BatchHalf& half);
  void project(int layer, BatchHalf& half);
  // In model_forward_latent.cc.
  void project_latent(int layer, BatchHalf& half);
  void project_to_latents(int layer, BatchHalf& half);
  // In model_forward_head_norms.cc.
  void norm_joined_heads(int layer, BatchHalf& half);
  // In model_forward_recurrent.cc.
  void write_delta_norms();
  void delta_layer(int layer, BatchHalf& half);
  void project_delta(int layer, BatchHalf& half);
  void project_grouped_delta(int layer, BatchHalf& half);
  void project_low_rank_delta(int layer, BatchHalf& half);
  void convolve(int layer, const DeltaShape& shape, BatchHalf& half);
  StateSlots state_slots(int layer, const BatchHalf& half) const;
  void take_gates_apart(int heads, int head_dim, const BatchHalf& half);
  // In model_forward_sparse.cc.
  bool is_choosing(int layer) const;
  void store_index_key(int layer, const BatchHalf& half);
  void store_index(const LayerPages& pages, Slice keys, const BatchHalf& half);
  void store_pools(int layer, const BatchHalf& half);
  void store_key_rows(int layer, const BatchHalf& half);
  void store_block_index(int layer, const BatchHalf& half);
  void store_index_entries(int layer, const EntryBuffers& entries, const BatchHalf& half);
  void choose_positions(int layer, const BatchHalf& half);
  void rotate_index(Slice x, int heads, const BatchHalf& half);
  void join_columns(Slice first, Slice second, int columns, const BatchHalf& half, Slice to);
  // In model_forward_compressed.cc.
  struct EntryParts;
  void list_entries(const Batch& batch);
  void skip_entries(int begin, int tokens, BatchHalf& half) const;
  void write_entries();
  void write_last_entries(const Batch& batch);
  void compressed_attention(int layer, BatchHalf& half);
  void project_compressed(int layer, const BatchHalf& half);
  void turn_last(int layer, Slice x, int heads, const BatchHalf& half);
  void store_shared_key(int layer, const BatchHalf& half);
  void store_rows(const LayerPages& pages, Slice rows, int columns, Slice page,
                  const BatchHalf& half);
  void make_entries(int layer, const BatchHalf& half);
  void queue_entries(int layer, const EntryParts& parts, const BatchHalf& half);
  void attend_compressed(int layer, const BatchHalf& half);
  const EntryBuffers& entries_of(const BatchHalf& half, int pool) const;
  void mix(int layer, const BatchHalf& half);
  void finish_attention(int layer, BatchHalf& half);
  void feed_forward(int layer, BatchHalf& half);
  const LeafShares& mixer_shares(int layer) const;
  void dense_feed_forward(int layer, const BatchHalf& half);
  const LeafShares& feed_forward_shares(int layer) const;
  GatedUp gated_up(int layer, const BatchHalf& half, Role gate, Role up) const;
  void experts(int layer, const BatchHalf& half);
  void route(int layer, const BatchHalf& half);
  // In model_forward_sums.cc: where the product number `index` of feed_forward_sums() goes, and,
  // after it, its copy to its place in the exchange.
  Slice product_place(int layer, const BatchHalf& half, int index) const;
  void place_product(int layer, const BatchHalf& half, int index);
  void join_products(int layer, const BatchHalf& half);
  void finish_feed_forward(int layer, BatchHalf& half);
  const LayerWeights& layer_weights(int layer) const {
    return weights_.layers[static_cast<size_t>(layer)];
  }
  // Queues the turn that leaves the sums of all ranks in the half's exchange buffer: the next norm
  // adds them to the hidden state, or add_sum() does. Other operations run while the sums of a half
  // travel, and the turn of the other half finishes them; those of the last one, and of an
  // undivided batch, are finished at once.
  void exchange(const LeafShares& shares, int vectors, BatchHalf& half, bool is_last);
  Status exchange_sums(const Turn& turn);
  Status finish_sums();
  void queue_outputs(const Batch& batch);
  void copy(Slice from, int tokens, int columns, Slice to);  // of dense rows
  // The logits of `count` selected rows.
  void queue_logits(size_t count);
  ModelOutputs outputs(const Batch& batch);
  void pass_on(int tokens);
  void receive(std::span<const float> passed, size_t tokens);
  void add_sum(BatchHalf& half);
  // The norm of the hidden state that enters a part of the layer, after adding a pending sum.
  void norm_hidden(int layer, Role norm, BatchHalf& half);
  // The norm of a pending sum by itself, if the layer has this one; of vector `index` of several.
  void norm_sum(int layer, Role norm, const BatchHalf& half, int index = 0);
  void norm_rows(Slice rows, size_t count, Slice output);
  // The hidden state before the final norm; after join_streams().
  Slice last_hidden() const {
    return config_.streams.count > 1 ? buffers_.normed : buffers_.hidden;
  }
  // The norm of whole hidden states.
  void queue_norm(Slice x, Slice weight, int tokens, Slice y);

  ModelConfig config_;
  Range layers_;
  std::function<Status()> between_layers_;
  Overlap overlap_;
  Cut cut_;
  Group& group_;
  Device& device_;
  BatchLimits limits_;
  int rank_;
  KvKind kv_;
  std::vector<double> frequencies_;        // of the rotary pairs
  std::vector<double> other_frequencies_;  // where LayerTraits::has_other_rope
  Weights weights_;
  PassBuffers buffers_;
  StateBuffer state_;
  RecurrentBuffer recurrent_;
  std::array<BatchHalf, 2> halves_;  // of the current batch
  size_t half_count_ = 0;
  const BatchHalf* exchanging_ = nullptr;  // the half whose exchange is in flight
  // Scratch, kept so that a pass allocates nothing.
  std::vector<Turn> turns_;  // of the current pass
  int pages_reached_ = 0;    // by the sequences of the batch, rounded up
  int hidden_rows_ = 0;      // of the last pass, for the draft layer
  int draft_rows_ = 0;       // of its own last pass
  Batch block_batch_;        // of the draft layer's last blocks
  std::vector<int32_t> block_end_;
  bool is_sparse_ = false;  // a token of the batch does not attend to all positions so far
  std::vector<int32_t> places_, own_rows_, page_, slot_;
  std::vector<int32_t> window_page_, window_offsets_;
  // The entries that the tokens of a batch complete, as EntryBuffers, and which token it is.
  struct ListedEntries {
    std::vector<int32_t> token, last, first, list_offsets, page, slot;

    std::array<std::vector<int32_t>*, 6> all() {
      return {&token, &last, &first, &list_offsets, &page, &slot};
    }
  };
  std::vector<ListedEntries> entries_;  // by the kind of pool
  std::vector<int32_t> last_entry_;
  // The rows of n-grams of a batch, (tokens, heads).
  struct ListedNgrams {
    std::vector<int32_t> rows;
    std::vector<int32_t> places;    // in the exchange buffer
    std::vector<int32_t> own;       // this rank's rows, of its parts
    std::vector<float> own_values;  // if the table is on the disk
    size_t begin = 0;               // of these in the exchange buffer
    // (states, size - 1): the last tokens of each state's sequence, the last one first.
    std::vector<int32_t> last_tokens;
    std::vector<int32_t> start;  // those of a sequence that begins

    void clear() {  // a pass without n-grams
      rows.clear();
      own.clear();
    }
  };
  ListedNgrams ngrams_;
  std::optional<NgramFiles> ngram_files_;  // if the table is on the disk
  std::vector<float> ngram_state_;         // the state of n-grams, in whole blocks of a page
  std::vector<float> factors_, rope_;
  std::vector<float> layer_state_;  // a layer's state between the device and a page's order
  std::vector<size_t> embedded_ends_, part_ends_;
  std::vector<std::span<std::byte>> gathered_;
};

}  // namespace lockstep
