// Llama 2 and 3 (also TinyLlama, stories260K and others that are published as LlamaForCausalLM).
#pragma once

#include "model/architecture.h"

namespace lockstep {

extern const Architecture kLlama;

}  // namespace lockstep
