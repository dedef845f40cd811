// The architectures that lockstep knows, each a table.
#pragma once

#include "model/architectures/architecture.h"

namespace lockstep {

extern const Architecture kLlama;        // Llama 2 and 3, TinyLlama, stories260K
extern const Architecture kMistral;      // Mistral 7B to Large
extern const Architecture kMinistral3;   // Ministral 3, Devstral 2
extern const Architecture kQwen2;        // Qwen 2 and 2.5
extern const Architecture kQwen3;        // Qwen 3
extern const Architecture kQwen3Moe;     // Qwen 3 30B, 235B, Coder 480B
extern const Architecture kGlm4Moe;      // GLM 4.5 and 4.6
extern const Architecture kMiniMaxM2;    // MiniMax M2, M2.1, M2.5
extern const Architecture kGemma4;       // Gemma 4, dense
extern const Architecture kGptOss;       // gpt-oss 20B and 120B
extern const Architecture kDeepseekV3;   // DeepSeek V3, R1, V3.1, Kimi K2 and K2.5
extern const Architecture kGlm4MoeLite;  // GLM 4.7 Flash
extern const Architecture kQwen3Next;    // Qwen3-Next, Qwen3-Coder-Next
extern const Architecture kQwen35;       // Qwen 3.5, dense
extern const Architecture kQwen35Moe;    // Qwen 3.5 with experts
extern const Architecture kKimiLinear;   // Kimi Linear 48B
extern const Architecture kDeepseekV32;  // DeepSeek V3.2
extern const Architecture kGlmMoeDsa;    // GLM 5 and 5.2
extern const Architecture kGlm5Next;     // GLM-5.3-Flash
extern const Architecture kDeepseekV4;   // DeepSeek V4 Flash and Pro
extern const Architecture kQwen4Exp;     // Qwen 3.8 Flash Next

}  // namespace lockstep
