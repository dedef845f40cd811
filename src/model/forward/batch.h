// Batch: the input of one forward pass: some tokens of some sequences, and the tokens whose logits
// or hidden state are wanted. It refers to state by page numbers, which mean the same on every
// rank.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace lockstep {

// Limits of a batch, the same on all ranks.
struct BatchLimits {
  int tokens_max = 0;
  int page_list_entries_max = 0;
  int pages = 0;
  int vocab_size = 0;
  int states = 0;                 // of recurrent layers; 0 if the model has none
  int positions_max = INT32_MAX;  // of a sequence
  int window_pages = 0;           // 0 if the model has none
  int reach = 0;                  // of these
};

struct Batch {
  std::vector<int32_t> tokens;        // of each sequence in ascending order of position
  std::vector<int32_t> positions;     // (tokens)
  std::vector<int32_t> list_offsets;  // (tokens) where the page list of the token's sequence begins
  // (tokens), if the model has recurrent layers: the number of the state that the token continues
  // (-1: its sequence begins), and of the one that it leaves.
  std::vector<int32_t> states_from;
  std::vector<int32_t> states_to;
  std::vector<int32_t> page_lists;  // of all sequences, one after the other
  // If the model has window pages: those of the last pages of all sequences, and (tokens) where the
  // list of the token's sequence would begin if it had all of its pages, maybe before the first.
  std::vector<int32_t> window_lists;
  std::vector<int32_t> window_offsets;
  std::vector<int32_t> outputs;         // indices of tokens whose logits are wanted
  std::vector<int32_t> hidden_outputs;  // indices of tokens whose hidden state is wanted

  int token_count() const { return static_cast<int>(tokens.size()); }
  void clear();
  // Reserves memory for the largest batch, so that filling one allocates nothing.
  void reserve(const BatchLimits& limits);
};

// A pass of the draft layer over tokens that follow tokens already computed: positions are those
// of the hidden states, which are rows of the last pass of the model or, from `tokens_max` on, of
// the last pass of the draft layer.
struct DraftBatch {
  Batch batch;                       // without states and hidden outputs
  std::vector<int32_t> hidden_rows;  // (tokens)
};

// kCorrupt if the batch would access anything outside the model's tables or state.
Status check_batch(const Batch& batch, const BatchLimits& limits);

}  // namespace lockstep
