// StoredMatrix: how a checkpoint stores one matrix: the format, and the places of its parts in the
// files. Readers of checkpoints fill it (weights/), devices lay it out for their kernels (device/).
// Nothing is converted here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tensor/dtype.h"

namespace lockstep {

enum class StoredFormat {
  // Elements of `scale_type` (kF32, kF16, kBF16), row after row.
  kPlain,
  // MLX: codes of `bits` (2, 3, 4, 5, 6, 8), unsigned, the lowest bits of a row's bytes first;
  // weight = code * scale + bias. Scales and biases of `scale_type`, (rows, columns / group).
  // https://github.com/ml-explore/mlx, docs of mx.quantize
  kAffine,
  // E4M3 bytes; weight = code * scale. Scales (rows / row_group, columns / group), rounded up.
  kFp8,
  // E2M1 nibbles, the lower one first; weight = code * scale * factor. Scales (rows,
  // columns / group): kF8E8M0 by 32 (OCP MX, gpt-oss), kF8E4M3 by 16 (NVFP4).
  kFp4,
  // compressed-tensors "pack-quantized": 32-bit words with 32 / bits codes, the lowest first, each
  // row padded to whole words; weight = (code - 2^(bits - 1)) * scale. With `zeros` (packed the
  // same way along the rows: (rows * bits / 32, columns / group)) weight = (code - zero) * scale.
  // https://github.com/neuralmagic/compressed-tensors
  kPackedInt,
  // GPTQ 4 and 8 bit: words along the columns, (columns * bits / 32, rows); zeros
  // (columns / group, rows * bits / 32), scales (columns / group, rows);
  // weight = (code - zero - zero_bias) * scale. https://arxiv.org/abs/2210.17323, AutoGPTQ
  kGptq,
  // AWQ 4 bit ("gemm"): words along the rows, (columns, rows / 8), codes in the order 0 2 4 6 1 3 5
  // 7; zeros likewise, (columns / group, rows / 8); scales (columns / group, rows).
  // https://arxiv.org/abs/2306.00978, AutoAWQ
  kAwq,
  // A block format of ggml, by `gguf_type` (GgmlType in tensor/ggml_blocks.h), row after row.
  kGguf,
};

struct StoredMatrix {
  StoredFormat format = StoredFormat::kPlain;
  int rows = 0;
  int columns = 0;
  std::span<const std::byte> codes;  // or plain elements; need not be aligned, like all parts
  size_t row_bytes = 0;              // of `codes`, from one row to the next; not for kGptq, kAwq
  int bits = 0;                      // of a code
  int group = 0;                     // columns that share a scale; 0: all
  int row_group = 1;                 // rows that share a scale; 0: all
  DType scale_type = DType::kF32;    // of scales and biases; of the elements of kPlain
  std::span<const std::byte> scales;
  std::span<const std::byte> biases;  // kAffine
  std::span<const std::byte> zeros;   // zero points of kPackedInt, kGptq, kAwq; may be empty
  int zero_bias = 0;                  // kGptq: 1, but 0 for "checkpoint_format": "gptq_v2"
  std::span<const std::byte> groups;  // kGptq with act-order: int32 (columns), the group of each
  float factor = 1;                   // applied to all weights (NVFP4's second scale)
  uint32_t gguf_type = 0;
  // (rows), or empty: row r of the matrix is stored as row row_map[r]. Must outlive the matrix.
  std::span<const int32_t> row_map;
  // (columns / column_group), or empty: group g of the columns is stored as group column_map[g].
  // Only for kPlain and kGguf; groups of blocks are whole runs of 32 columns. Must outlive the
  // matrix.
  std::span<const int32_t> column_map;
  int column_group = 0;
  // All parts are in mapped files, whose pages may be released once they have been read.
  bool is_mapped_file = false;
  // Keeps parts alive that are not in a file (a converted matrix); else null.
  std::shared_ptr<const void> owner;

  int stored_row(int row) const {
    return row_map.empty() ? row : row_map[static_cast<size_t>(row)];
  }
  int stored_column(int column) const {
    if (column_map.empty()) return column;
    return column_map[static_cast<size_t>(column / column_group)] * column_group +
           column % column_group;
  }
  // From `column` on, how many are stored side by side.
  int adjacent_columns(int column) const {
    return column_map.empty() ? columns - column : column_group - column % column_group;
  }
};

}  // namespace lockstep
