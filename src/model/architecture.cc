#include "model/architecture.h"

#include "model/architectures/llama.h"

namespace lockstep {
namespace {

constexpr const Architecture* kKnown[] = {&kLlama};

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture* known : kKnown) {
    if (known->name == name) return known;
  }
  return nullptr;
}

std::span<const Architecture* const> known_architectures() {
  return kKnown;
}

}  // namespace lockstep
