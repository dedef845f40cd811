// links: weights
// All that a GGUF source returns lies inside the file and has the requested shape, and it has every
// tensor that it reports.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "weights/gguf/gguf_source.h"

using namespace lockstep;

namespace {

constexpr std::string_view kNames[] = {
    "model.embed_tokens.weight",
    "lm_head.weight",
    "model.norm.weight",
    "model.layers.0.self_attn.q_proj.weight",
    "model.layers.0.self_attn.k_proj.weight",
    "model.layers.0.self_attn.q_proj.bias",
    "model.layers.0.self_attn.sinks",
    "model.layers.0.self_attn.embed_q.weight",
    "model.layers.0.post_attention_layernorm.weight",
    "model.layers.0.mlp.down_proj.weight",
    "model.layers.0.mlp.gate.e_score_correction_bias",
    "model.layers.0.mlp.experts.1.gate_proj.weight",
    "model.layers.0.mlp.experts.1.down_proj.bias",
};

bool is_inside(std::span<const std::byte> part, std::span<const std::byte> file) {
  return part.empty() ||
         (part.data() >= file.data() && part.data() + part.size() <= file.data() + file.size());
}

void check_matrix(const StoredMatrix& matrix, const MatrixRequest& request,
                  std::span<const std::byte> file) {
  LOCKSTEP_CHECK(matrix.rows == request.rows && matrix.columns == request.columns);
  LOCKSTEP_CHECK(is_inside(matrix.codes, file));
  LOCKSTEP_CHECK(matrix.codes.size() == matrix.row_bytes * static_cast<size_t>(matrix.rows));
  if (matrix.row_map.empty()) return;
  std::vector<int32_t> stored(matrix.row_map.begin(), matrix.row_map.end());
  std::sort(stored.begin(), stored.end());
  LOCKSTEP_CHECK(stored.size() == static_cast<size_t>(matrix.rows));
  for (size_t i = 0; i < stored.size(); ++i) {
    LOCKSTEP_CHECK(stored[i] == static_cast<int32_t>(i));
  }
}

void ask(const WeightSource& source, std::string_view name, int stack_index, int rows, int columns,
         std::span<const std::byte> file) {
  const MatrixRequest request{name, stack_index, rows, columns};
  const auto matrix = source.matrix(request);
  const auto vector = source.vector(name, stack_index, columns);
  if (matrix.ok()) check_matrix(matrix.value(), request, file);
  if (vector.ok()) {
    LOCKSTEP_CHECK(is_inside(vector.value().bytes, file));
    LOCKSTEP_CHECK(vector.value().bytes.size() ==
                   dtype_bytes(vector.value().dtype) * static_cast<size_t>(columns));
  }
  const bool is_found = source.has(name, stack_index);
  if (matrix.ok() || vector.ok()) LOCKSTEP_CHECK(is_found);
  if (!is_found) LOCKSTEP_CHECK(!matrix.ok() && !matrix.error().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  auto model = GgufModel::parse(file);
  if (!model.ok()) return 0;
  // The shapes of the file's own tensors, so that some requests match.
  std::vector<std::pair<int, int>> shapes{{0, 0}, {1, 1}, {-1, 1}};
  for (const GgufTensor& tensor : model.value().metadata().tensors()) {
    if (tensor.dimensions.empty() || tensor.dimensions[0] > INT32_MAX || shapes.size() > 16)
      continue;
    const uint64_t rows = tensor.dimensions.size() > 1 ? tensor.dimensions[1] : 1;
    if (rows > INT32_MAX) continue;
    shapes.emplace_back(static_cast<int>(rows), static_cast<int>(tensor.dimensions[0]));
  }
  const auto source = make_gguf_source(std::move(model.value()));
  if (!source.ok()) return 0;
  for (const std::string_view name : kNames) {
    for (const auto& shape : shapes) {
      ask(*source.value(), name, -1, shape.first, shape.second, file);
      ask(*source.value(), name, 1, shape.first, shape.second, file);
    }
  }
  return 0;
}
