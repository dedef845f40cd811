// The dense models with grouped-query attention. They differ in norms and biases of queries, keys
// and values, and in what config.json says about rope and windows.
#pragma once

#include "model/architecture.h"

namespace lockstep {

extern const Architecture kLlama;       // Llama 2 and 3, TinyLlama, stories260K
extern const Architecture kMistral;     // Mistral 7B to Large
extern const Architecture kMinistral3;  // Ministral 3, Devstral 2
extern const Architecture kQwen2;       // Qwen 2 and 2.5: biases on queries, keys and values
extern const Architecture kQwen3;       // Qwen 3: a norm over each head of queries and keys

}  // namespace lockstep
