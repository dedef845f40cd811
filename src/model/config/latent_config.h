// The sizes of latent and of compressed attention in config.json, and of the index that chooses
// among positions or entries.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Fills `config.latent` and the head's sizes if the architecture has latent attention.
Status read_latent(const Json& file, ModelConfig& config);
// Fills `config.indexer` and which layers share a choice, if the architecture has an index; sizes
// of latent attention have been read.
Status read_indexer(const Json& file, ModelConfig& config);
// Fills `config.indexer` of grouped attention that covers chosen blocks; what turns has been read.
Status read_block_index(const Json& file, ModelConfig& config);
// Fills `config.compressed`, the windows and pools of the layers, the index and which experts are
// given, if the architecture has compressed attention.
Status read_compressed(const Json& file, ModelConfig& config);
// Sets the angles of layers with entries, once those of the file's usual keys have been read.
Status read_compressed_rope(const Json& file, ModelConfig& config);

}  // namespace lockstep
