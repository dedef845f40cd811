// The sizes of latent attention in config.json.
#pragma once

#include "json/json.h"
#include "model/config/config.h"

namespace lockstep {

// Fills `config.latent` and the head's sizes if the architecture has latent attention.
Status read_latent(const Json& file, ModelConfig& config);

}  // namespace lockstep
