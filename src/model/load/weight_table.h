// The weights of one model, expanded from its architecture's table: each with its name, shape and
// the part that a rank owns. The loader reads these parts; the planner and `show` count their
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/load/cut.h"

namespace lockstep {

struct Weight {
  Role role;
  int layer = -1;   // -1: shared
  int expert = -1;  // -1: not an expert's
  std::string name;
  Split split;
  bool is_vector = false;  // a norm or a bias: one column, so that a part is a range of rows
  int rows = 0;
  int columns = 0;
  int kv_heads = 0;  // of its layer; 0 if it has none
};

// A rank's part of a weight. With Split::kDeltaBlocks it has as many rows as here, of each block.
struct WeightPart {
  Range rows;
  Range columns;
  uint64_t elements() const {
    return static_cast<uint64_t>(rows.size()) * static_cast<uint64_t>(columns.size());
  }
};

// Tied embeddings are listed once, as the embedding. Without a table of n-grams that stays on the
// disk.
std::vector<Weight> weight_table(const ModelConfig& config);
// The tensors of the parts of the table of n-grams, in order. The model must have one.
std::vector<std::string> ngram_table_names(ModelConfig config);
// Whether it makes the layers' own inputs, before the first layer.
bool makes_layer_inputs(Role role);
// Whether a token reads only its row: an embedding's, unless the matrix is also the LM head.
bool is_looked_up(Role role, bool is_also_head);
WeightPart part_of(const Weight& weight, const Cut& cut, int rank);
// Whether it is cut as the columns of the feed-forward part are. Norms and routers, which are whole
// on every rank, count as the mixer's.
bool is_cut_with_feed_forward(const Weight& weight);

}  // namespace lockstep
