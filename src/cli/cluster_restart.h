// `lockstep cluster restart`: nodes drain, end and begin anew, one after another, so that the
// others go on serving.
#pragma once

#include "cli/commands.h"

namespace lockstep {

void add_cluster_restart_command(CLI::App& cluster, Command& chosen);

}  // namespace lockstep
