#include "model/load/stored_forms.h"

#include <algorithm>
#include <cmath>

#include "tensor/stored_check.h"

namespace lockstep {
namespace {

// The number of columns of which leaf sizes should be a multiple.
int column_alignment(const StoredMatrix& m) {
  switch (m.format) {
    case StoredFormat::kPlain:
      return 1;
    case StoredFormat::kGguf:
      return kAlignmentMin;
    default:
      return std::max(kAlignmentMin, m.group);
  }
}

Result<CutAlignment> alignment_in(const WeightSource& source, const ModelConfig& config,
                                  Range layers) {
  CutAlignment alignment;
  for (const Weight& weight : weight_table(config)) {
    if (weight.layer < layers.begin || weight.layer >= layers.end) continue;
    const bool is_of_expert =
        weight.split == Split::kExpertFfn || weight.split == Split::kExpertFfnColumns ||
        weight.split == Split::kSharedFfn || weight.split == Split::kSharedFfnColumns;
    const bool is_dense = weight.split == Split::kFfn || weight.split == Split::kFfnColumns;
    if (weight.is_vector || weight.expert > 0 || (!is_of_expert && !is_dense)) continue;
    const StoredMatrix stored = TRY(stored_form(source, weight));
    const bool is_cut_by_columns = weight.split == Split::kFfnColumns ||
                                   weight.split == Split::kExpertFfnColumns ||
                                   weight.split == Split::kSharedFfnColumns;
    const int wanted = is_cut_by_columns ? column_alignment(stored) : std::max(1, stored.row_group);
    int& most = is_dense ? alignment.ffn : alignment.experts;
    most = std::max(most, wanted);
  }
  return alignment;
}

}  // namespace

std::string head_part_name(const Weight& kv_up, std::string_view part) {
  constexpr std::string_view kWhole = "kv_b_proj";
  std::string name = kv_up.name;
  return name.replace(name.rfind(kWhole), kWhole.size(), part);
}

// If neither form exists, the error names the common one.
bool has_split_heads(const WeightSource& source, const Weight& kv_up) {
  return !source.has(kv_up.name) && source.has(head_part_name(kv_up, "embed_q"), 0);
}

Result<StoredMatrix> stored_form(const WeightSource& source, const Weight& weight) {
  return source.matrix({.name = weight.name,
                        .stack_index = weight.expert,
                        .rows = weight.rows,
                        .columns = weight.columns,
                        .row_end = 1});
}

Result<CutAlignment> alignment_of(const WeightSource& source, const ModelConfig& config) {
  return alignment_in(source, config, {0, config.layers});
}

Result<CutAlignment> draft_alignment_of(const WeightSource& source, const ModelConfig& config) {
  return alignment_in(source, config, {config.layers, config.end_with_draft(config.layers)});
}

Result<uint64_t> latent_layer_bytes(const WeightSource& source, const ModelConfig& config) {
  uint64_t bytes = 0;
  for (const Weight& weight : weight_table(config)) {
    if (weight.layer >= config.layers) continue;
    if (weight.split != Split::kQueryLatent && weight.split != Split::kKvLatent) continue;
    const StoredMatrix stored = TRY(stored_form(source, weight));
    const auto elements =
        static_cast<uint64_t>(weight.rows) * static_cast<uint64_t>(weight.columns);
    bytes += stored_bytes_of(stored, elements);
  }
  return bytes / static_cast<uint64_t>(config.layers);
}

uint64_t stored_bytes_of(const StoredMatrix& m, uint64_t elements) {
  const double share = static_cast<double>(elements) / (static_cast<double>(m.rows) * m.columns);
  return static_cast<uint64_t>(std::llround(static_cast<double>(stored_bytes(m)) * share));
}

}  // namespace lockstep
