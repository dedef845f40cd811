// Published models by name: what their config.json says about sizes and constants, so that a
// model's speed and memory can be told before it is downloaded. Used by `lockstep bench --shape`
// and `lockstep show`. Only fields that the shape depends on; facts from the model cards of the
// repositories named beside them.
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

struct KnownShape {
  std::string_view name;     // "llama-3.2-1b"
  std::string_view example;  // a repository on Hugging Face with this shape
  std::string_view config;   // for parse_config(); of a multimodal model, its text model
};

std::span<const KnownShape> known_shapes();
// Null if there is none of that name.
const KnownShape* find_known_shape(std::string_view name);

}  // namespace lockstep
