// The tensors of a delta rule as llama.cpp's converter writes them: conversion/qwen.py, classes
// Qwen3NextModel and _LinearAttentionVReorderBase of https://github.com/ggml-org/llama.cpp
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "json/json.h"
#include "kernels/math.h"
#include "support/gguf_writer.h"
#include "tensor/half.h"
#include "weights/safetensors/checkpoint.h"

namespace lockstep::testing {

struct DeltaShape {
  size_t keys = 0;    // heads
  size_t values = 0;  // of all key heads
  size_t key_dim = 0;
  size_t value_dim = 0;
  bool tiles_values = false;  // value heads of one number within their key heads are neighbours
  bool joins_inputs = false;  // one matrix has queries, keys, values and gates by key head
};

struct ConvertedTensor {
  std::string name;                  // within its layer
  std::vector<uint64_t> dimensions;  // the contiguous one first
  DType type = DType::kF32;
  std::string bytes;
};

using StoredRows = std::vector<std::string>;

inline StoredRows split_rows(const std::string& bytes, size_t rows) {
  StoredRows split;
  const size_t size = bytes.size() / rows;
  for (size_t row = 0; row < rows; ++row) split.push_back(bytes.substr(row * size, size));
  return split;
}

inline std::string joined(const StoredRows& rows) {
  std::string bytes;
  for (const std::string& row : rows) bytes += row;
  return bytes;
}

// `before` rows, then value heads of `size` rows.
inline StoredRows tiled(const StoredRows& rows, const DeltaShape& shape, size_t size,
                        size_t before) {
  if (!shape.tiles_values) return rows;
  StoredRows moved(rows.begin(), rows.begin() + static_cast<int64_t>(before));
  const size_t of_key = shape.values / shape.keys;
  for (size_t own = 0; own < of_key; ++own) {
    for (size_t key = 0; key < shape.keys; ++key) {
      for (size_t i = 0; i < size; ++i) {
        moved.push_back(rows[before + (key * of_key + own) * size + i]);
      }
    }
  }
  return moved;
}

inline std::string bytes_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

inline std::string as_f32(const TensorView& tensor) {
  std::string bytes;
  for (size_t i = 0; i < tensor.bytes.size() / dtype_bytes(tensor.dtype); ++i) {
    bytes += GgufWriter::raw(load_element(tensor.bytes.data(), tensor.dtype, i));
  }
  return bytes;
}

inline std::string minus_exponentials(const TensorView& tensor) {
  std::string bytes;
  for (size_t i = 0; i < tensor.bytes.size() / dtype_bytes(tensor.dtype); ++i) {
    bytes += GgufWriter::raw(-exp_f32(load_element(tensor.bytes.data(), tensor.dtype, i)));
  }
  return bytes;
}

// The rows of a matrix whose columns are value heads.
inline std::string tiled_columns(const TensorView& tensor, const DeltaShape& shape) {
  std::string bytes;
  for (const std::string& row :
       split_rows(bytes_of(tensor), static_cast<size_t>(tensor.shape[0]))) {
    bytes += joined(tiled(split_rows(row, shape.values), shape, 1, 0));
  }
  return bytes;
}

inline ConvertedTensor matrix(const char* name, const TensorView& like, const StoredRows& rows) {
  return {name, {static_cast<uint64_t>(like.shape[1]), rows.size()}, like.dtype, joined(rows)};
}

// By key head: its query, its key, the values and the gates of its value heads.
inline std::vector<ConvertedTensor> split_inputs(const TensorView& tensor,
                                                 const DeltaShape& shape) {
  const size_t values = shape.values / shape.keys * shape.value_dim;
  const size_t sizes[] = {shape.key_dim, shape.key_dim, values, values};
  const StoredRows rows = split_rows(bytes_of(tensor), static_cast<size_t>(tensor.shape[0]));
  StoredRows parts[4];
  for (size_t head = 0, at = 0; head < shape.keys; ++head) {
    for (size_t part = 0; part < 4; ++part) {
      for (size_t i = 0; i < sizes[part]; ++i) parts[part].push_back(rows[at++]);
    }
  }
  StoredRows inputs;
  for (size_t part = 0; part < 3; ++part) {
    inputs.insert(inputs.end(), parts[part].begin(), parts[part].end());
  }
  return {matrix("attn_qkv.weight", tensor, inputs), matrix("attn_gate.weight", tensor, parts[3])};
}

inline DeltaShape delta_shape_of(const Json& config) {
  const auto number = [&](const char* name) { return find(config, name)->to_number<size_t>(); };
  return {.keys = number("linear_num_key_heads"),
          .values = number("linear_num_value_heads"),
          .key_dim = number("linear_key_head_dim"),
          .value_dim = number("linear_value_head_dim")};
}

// `part` is "A_log" of "model.layers.0.linear_attn.A_log".
inline std::vector<ConvertedTensor> converted_delta(const TensorView& tensor,
                                                    const std::string& part,
                                                    const DeltaShape& shape) {
  const auto rows = [&] {
    return split_rows(bytes_of(tensor), static_cast<size_t>(tensor.shape[0]));
  };
  const auto vector = [&](const char* name, const std::string& bytes) {
    const StoredRows moved = tiled(split_rows(bytes, shape.values), shape, 1, 0);
    return ConvertedTensor{name, {shape.values}, DType::kF32, joined(moved)};
  };
  const size_t before = 2 * shape.keys * shape.key_dim;
  if (part == "in_proj_qkv.weight") {
    return {matrix("attn_qkv.weight", tensor, tiled(rows(), shape, shape.value_dim, before))};
  }
  if (part == "in_proj_z.weight") {
    return {matrix("attn_gate.weight", tensor, tiled(rows(), shape, shape.value_dim, 0))};
  }
  if (part == "in_proj_b.weight") {
    return {matrix("ssm_beta.weight", tensor, tiled(rows(), shape, 1, 0))};
  }
  if (part == "in_proj_a.weight") {
    return {matrix("ssm_alpha.weight", tensor, tiled(rows(), shape, 1, 0))};
  }
  if (part == "in_proj_qkvz.weight" && shape.joins_inputs) {
    return {matrix("ssm_in.weight", tensor, rows())};
  }
  if (part == "in_proj_qkvz.weight") return split_inputs(tensor, shape);
  if (part == "in_proj_ba.weight") return {matrix("ssm_ba.weight", tensor, rows())};
  if (part == "A_log") return {vector("ssm_a", minus_exponentials(tensor))};
  if (part == "dt_bias") return {vector("ssm_dt.bias", as_f32(tensor))};
  if (part == "norm.weight") {
    return {{"ssm_norm.weight", {shape.value_dim}, DType::kF32, as_f32(tensor)}};
  }
  if (part == "conv1d.weight") {
    const auto channels = static_cast<size_t>(tensor.shape[0]);
    const StoredRows moved =
        tiled(split_rows(as_f32(tensor), channels), shape, shape.value_dim, before);
    return {{"ssm_conv1d.weight",
             {static_cast<uint64_t>(tensor.shape[2]), channels},
             DType::kF32,
             joined(moved)}};
  }
  REQUIRE(part == "out_proj.weight");
  return {{"ssm_out.weight",
           {static_cast<uint64_t>(tensor.shape[1]), static_cast<uint64_t>(tensor.shape[0])},
           tensor.dtype,
           tiled_columns(tensor, shape)}};
}

}  // namespace lockstep::testing
