#include "collective/plan/wire.h"

#include "base/named_values.h"

namespace lockstep {
namespace {

constexpr NamedValues<Wire, 3> kWireNames{{
    {Wire::kF32, "f32"},
    {Wire::kBf16, "bf16"},
    {Wire::kQ8, "q8"},
}};

}  // namespace

Result<Wire> parse_wire(std::string_view name) {
  return value_named(kWireNames, name, "wire format");
}

std::string_view wire_name(Wire wire) {
  return name_in(kWireNames, wire);
}

}  // namespace lockstep
