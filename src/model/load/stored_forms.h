// How a checkpoint stores weights, as far as cuts and sizes depend on it. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/load/cut.h"
#include "model/load/weight_table.h"
#include "weights/weight_source.h"

namespace lockstep {

// The heads of latent attention (Role::kKvUp) are stored as "kv_b_proj" or, by MLX, as stacks of
// their parts "embed_q" and "unembed_out".
bool has_split_heads(const WeightSource& source, const Weight& kv_up);
std::string head_part_name(const Weight& kv_up, std::string_view part);

// How a matrix is stored, where only that is wanted: asks for one row of it, the smallest request
// that a source may have to convert.
Result<StoredMatrix> stored_form(const WeightSource& source, const Weight& weight);

// The alignment of leaf boundaries, from the quantisation groups of the feed-forward weights.
Result<CutAlignment> alignment_of(const WeightSource& source, const ModelConfig& config);

// The same for the draft layer by itself.
Result<CutAlignment> draft_alignment_of(const WeightSource& source, const ModelConfig& config);

// Checkpoint bytes of both projections to the latents, for an average layer; 0 without latent
// attention. The same on every rank.
Result<uint64_t> latent_layer_bytes(const WeightSource& source, const ModelConfig& config);

// Bytes of `elements` of the matrix in its files.
uint64_t stored_bytes_of(const StoredMatrix& matrix, uint64_t elements);

}  // namespace lockstep
