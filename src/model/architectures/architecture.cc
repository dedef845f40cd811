#include "model/architectures/architecture.h"

#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr const Architecture* kKnown[] = {
    &kLlama,     &kMistral,    &kMinistral3, &kQwen2,      &kQwen3,       &kQwen3Moe,
    &kGlm4Moe,   &kMiniMaxM2,  &kGemma4,     &kGptOss,     &kDeepseekV3,  &kGlm4MoeLite,
    &kQwen3Next, &kQwen35,     &kQwen35Moe,  &kKimiLinear, &kDeepseekV32, &kGlmMoeDsa,
    &kGlm5Next,  &kDeepseekV4, &kQwen4Exp};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture* known : kKnown) {
    if (known->name == name) return known;
  }
  return nullptr;
}

const Architecture* find_model_type(std::string_view type) {
  for (const Architecture* known : kKnown) {
    for (const std::string_view own : known->model_types) {
      if (!own.empty() && own == type) return known;
    }
  }
  return nullptr;
}

std::span<const Architecture* const> known_architectures() {
  return kKnown;
}

}  // namespace lockstep
