// Published models by name: the sizes and constants in their config.json, so that a model's speed
// and memory can be computed before it is downloaded. Used by `lockstep bench --shape` and
// `lockstep show`. Only fields that the shape depends on, taken from the model cards of the
// repositories named with them.
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

struct KnownShape {
  std::string_view name;     // "llama-3.2-1b"
  std::string_view example;  // a repository on Hugging Face with this shape
  std::string_view config;   // for parse_config(); for a multimodal model its text model
};

std::span<const KnownShape> known_shapes();
// Null if there is none of that name.
const KnownShape* find_known_shape(std::string_view name);

}  // namespace lockstep
