// The access flags of `lockstep serve` and `lockstep router`: who may send requests.
#pragma once

#include "access/access_control.h"

// Declared so that includers need not read CLI11.
namespace CLI {
class App;
}  // namespace CLI

namespace lockstep {

void add_access_flags(CLI::App& command, AccessOptions& access);

// The given options, with the keys of this user's folder.
Result<AccessOptions> access_with_keys(const AccessOptions& given);

}  // namespace lockstep
