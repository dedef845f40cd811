// The JSON form of MachineMeters in heartbeats. Unknown figures are left out, and a node that sends
// none at all is read too. Pure functions; invalid input is kCorrupt.
#pragma once

#include "base/meters/machine_meters.h"
#include "base/result.h"
#include "json/json.h"

namespace lockstep {

Json meters_json(const MachineMeters& meters);
// The member "meters" of `object`.
Result<MachineMeters> meters_field(const Json& object);

}  // namespace lockstep
