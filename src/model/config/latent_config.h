// The sizes of latent attention in config.json, and of the index that chooses its positions.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Fills `config.latent` and the head's sizes if the architecture has latent attention.
Status read_latent(const Json& file, ModelConfig& config);
// Fills `config.indexer` and which layers share a choice, if the architecture has an index; sizes
// of latent attention have been read.
Status read_indexer(const Json& file, ModelConfig& config);

}  // namespace lockstep
