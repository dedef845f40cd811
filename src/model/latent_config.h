// The sizes of latent attention in config.json.
#pragma once

#include "json/json.h"
#include "model/config.h"

namespace lockstep {

// Fills `config.latent` and the head's sizes for an architecture with latent attention, else
// nothing.
Status read_latent(const Json& file, ModelConfig& config);

}  // namespace lockstep
