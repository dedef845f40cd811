// `lockstep cluster restart`: nodes drain, exit and start again, one after another, so that the
// others keep serving.
#pragma once

#include "cli/commands/commands.h"

namespace lockstep {

void add_cluster_restart_command(CLI::App& cluster, Command& chosen);

}  // namespace lockstep
