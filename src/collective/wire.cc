#include "collective/wire.h"

#include <array>
#include <string>
#include <utility>

namespace lockstep {
namespace {

constexpr std::array<std::pair<Wire, std::string_view>, 3> kNames{{
    {Wire::kF32, "f32"},
    {Wire::kBf16, "bf16"},
    {Wire::kQ8, "q8"},
}};

}  // namespace

Result<Wire> parse_wire(std::string_view name) {
  for (const auto& [wire, known] : kNames) {
    if (name == known) return wire;
  }
  return Error{ErrorCode::kInvalidArgument,
               "'" + std::string(name) + "' is no wire format; there are f32, bf16 and q8"};
}

std::string_view wire_name(Wire wire) {
  for (const auto& [known, name] : kNames) {
    if (wire == known) return name;
  }
  return "";
}

}  // namespace lockstep
