// Tables of n-grams (Qwen3.8-Flash-Next): one layer has stored rows for the last two, three, ...
// tokens, each found by a hash, which it adds to the residual streams. Source: Qwen4ExpPLE in
// Hugging Face transformers. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"

namespace lockstep {

// There are equally many heads for n-grams of 2, 3, ... `size` tokens. A token has a row of each
// head, side by side.
struct NgramConfig {
  int layer = 0;  // counted from 0
  int size = 0;   // the longest n-gram
  int heads = 0;  // of all lengths
  int row = 0;    // numbers of a row
  int parts = 0;  // of the table, as it is stored
  int part_rows = 0;
  int taps = 0;       // of a convolution, `size` tokens apart
  int end_token = 0;  // tokens before it do not count
  int64_t base = 0;   // the least rows of a head
  // An option of whoever loads the model: the table stays in its files (ngram_files.h).
  bool is_on_disk = false;

  int columns() const { return heads * row; }
  // Past inputs of the convolution.
  int past() const { return (taps - 1) * size; }
  // Numbers of a sequence's state: past inputs, and then its last tokens.
  size_t state_elements(size_t channels) const {
    return static_cast<size_t>(past()) * channels + static_cast<size_t>(size - 1);
  }
};

// How a chain of tokens becomes a row of each head: the tokens' products with their multipliers,
// joined by exclusive or, modulo the head's rows, from its first row on.
struct NgramConstants {
  std::vector<int64_t> multipliers;  // (size), the first one of the token itself
  std::vector<int64_t> rows;         // (heads)
  std::vector<int64_t> offsets;      // (heads)
};

// The constants that the published code makes, which checkpoints also store.
NgramConstants published_constants(const NgramConfig& config, int vocab_size);
// The rows of all heads together, of which each has at least `base`.
int64_t used_rows(int64_t base, int heads);
// kCorrupt if a chain could leave the table or overflow.
Status check_constants(const NgramConstants& constants, const NgramConfig& config, int vocab_size);

// Appends the row of each head, from 0 to parts * part_rows - 1, for a token after `before`: the
// tokens before it, the last one first, (size - 1), where kNoToken is the beginning.
inline constexpr int32_t kNoToken = -1;
void append_rows(const NgramConfig& config, const NgramConstants& constants, int32_t token,
                 const int32_t* before, std::vector<int32_t>& rows);

}  // namespace lockstep
