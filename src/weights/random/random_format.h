// The stored formats in which random weights can be made: the layout of a matrix, and byte patterns
// that give values of a trained model's size (about 0.02). For random_source.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/stored_matrix.h"

namespace lockstep {

enum class RandomContent {
  kNone,
  kCodes,     // any bytes
  kFp8Codes,  // any E4M3 but NaN
  kWeights,   // elements of `type`, spread evenly around zero
  kConstant,  // elements of `type`, each `value`
  kCount,     // elements of `type`: 0 to `value` - 1, again and again
  kBlocks,    // blocks of ggml with any codes and sane scales
};

// One part of a stored matrix; equal parts share one pattern.
struct RandomPart {
  RandomContent content = RandomContent::kNone;
  DType type = DType::kU8;
  float value = 0;
  uint32_t gguf_type = 0;

  bool operator==(const RandomPart&) const = default;
};

struct RandomFormat {
  std::string_view name;  // "mlx4"
  StoredFormat stored = StoredFormat::kPlain;
  int bits = 0;
  int group = 0;
  int row_group = 1;
  DType scale_type = DType::kBF16;
  uint32_t gguf_type = 0;
  float factor = 1;
  RandomPart codes{};
  RandomPart scales{};
  RandomPart biases{};
  RandomPart zeros{};
  // The format used instead for a matrix whose columns are not whole groups, as in llama.cpp;
  // empty: "bf16".
  std::string_view otherwise{};
};

// The bytes of the parts of one matrix.
struct RandomLayout {
  const RandomFormat* format = nullptr;
  size_t code_bytes = 0;
  size_t row_bytes = 0;
  size_t scale_bytes = 0;  // also of the biases
  size_t zero_bytes = 0;
};

std::span<const RandomFormat> random_formats();
// Null if there is none of that name.
const RandomFormat* find_random_format(std::string_view name);
// Uses `format`, or the format it falls back to for such a matrix.
RandomLayout random_layout(const RandomFormat& format, int rows, int columns);

// The size of a whole unit: an element or a block.
size_t random_unit_bytes(const RandomPart& part);
// `bytes` of the part, a multiple of its unit.
std::vector<std::byte> random_pattern(const RandomPart& part, size_t bytes);

}  // namespace lockstep
