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
    "model.layers.0.linear_attn.in_proj_qkv.weight",
    "model.layers.0.linear_attn.in_proj_z.weight",
    "model.layers.0.linear_attn.in_proj_b.weight",
    "model.layers.0.linear_attn.in_proj_a.weight",
    "model.layers.0.linear_attn.conv1d.weight",
    "model.layers.0.linear_attn.A_log",
    "model.layers.0.linear_attn.dt_bias",
    "model.layers.0.linear_attn.out_proj.weight",
    "mtp.norm.weight",
    "model.embed_tokens_per_layer.weight",
    "model.layers.0.pre_feedforward_layernorm.weight",
    "model.layers.0.router.scale",
    "model.layers.0.router.per_expert_scale",
    "model.layers.0.experts.1.gate_proj.weight",
    "model.layers.0.experts.1.up_proj.weight",
    "model.layers.0.layer_scalar",
    "model.layers.0.self_attn.indexer.wq_b.weight",
    "model.layers.0.self_attn.q_conv1d.weight",
    "model.layers.0.self_attn.k_conv1d.weight",
    "model.layers.0.self_attn.A_log",
    "model.layers.0.self_attn.f_a_proj.weight",
    "model.layers.2.eh_proj.weight",
};

bool is_inside(std::span<const std::byte> part, std::span<const std::byte> file) {
  return part.empty() ||
         (part.data() >= file.data() && part.data() + part.size() <= file.data() + file.size());
}

// All below `end`, and none twice.
void check_distinct(std::span<const int32_t> map, size_t end) {
  std::vector<bool> is_used(end);
  for (const int32_t at : map) {
    LOCKSTEP_CHECK(at >= 0 && static_cast<size_t>(at) < end);
    LOCKSTEP_CHECK(!is_used[static_cast<size_t>(at)]);
    is_used[static_cast<size_t>(at)] = true;
  }
}

void check_matrix(const StoredMatrix& matrix, const MatrixRequest& request,
                  std::span<const std::byte> file) {
  LOCKSTEP_CHECK(matrix.rows == request.rows && matrix.columns == request.columns);
  LOCKSTEP_CHECK(is_inside(matrix.codes, file));
  const size_t rows = matrix.row_bytes == 0 ? 0 : matrix.codes.size() / matrix.row_bytes;
  LOCKSTEP_CHECK(matrix.codes.size() == matrix.row_bytes * rows);
  if (matrix.row_map.empty()) {
    LOCKSTEP_CHECK(matrix.row_bytes == 0 || rows == static_cast<size_t>(matrix.rows));
  } else {  // some maps have half of the rows
    LOCKSTEP_CHECK(matrix.row_map.size() == static_cast<size_t>(matrix.rows));
    check_distinct(matrix.row_map, rows);
  }
  check_distinct(matrix.column_map, matrix.column_map.size());
}

void ask(const WeightSource& source, std::string_view name, int stack_index, int rows, int columns,
         std::span<const std::byte> file) {
  const MatrixRequest request{name, stack_index, rows, columns};
  const auto matrix = source.matrix(request);
  const auto vector = source.vector(name, stack_index, columns);
  if (matrix.ok()) check_matrix(matrix.value(), request, file);
  if (vector.ok()) {
    // Vectors in another order are copied.
    const bool may_be_copy = name.find(".linear_attn.") != std::string_view::npos ||
                             name.ends_with(".self_attn.A_log");  // the same tensor
    LOCKSTEP_CHECK(may_be_copy || is_inside(vector.value().bytes, file));
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
    if (tensor.dimensions.empty() || tensor.dimensions[0] > INT32_MAX || shapes.size() > 48)
      continue;
    const uint64_t rows = tensor.dimensions.size() > 1 ? tensor.dimensions[1] : 1;
    if (rows > INT32_MAX) continue;
    shapes.emplace_back(static_cast<int>(rows), static_cast<int>(tensor.dimensions[0]));
    shapes.emplace_back(static_cast<int>(rows / 2), static_cast<int>(tensor.dimensions[0]));
    uint64_t elements = 1;  // a vector of more dimensions than one: convolutions, rates of decay
    for (const uint64_t dimension : tensor.dimensions) {
      elements =
          dimension > INT32_MAX ? INT32_MAX : std::min<uint64_t>(elements * dimension, INT32_MAX);
    }
    shapes.emplace_back(1, static_cast<int>(elements));
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
