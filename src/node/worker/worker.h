// worker_main: the whole life of a worker process (`lockstep worker --control-fd N`). The control
// channel assigns its rank, the command line carries what only its machine knows
// (node/worker/worker_flags.h), and it loads its share of the model. Then it joins one epoch after
// the other: forms the group with the other ranks and works until the epoch ends, keeping what it
// has loaded. The process ends when the node stops it or is gone, or when the rank itself fails.
// The exit status is 0 after a stop and 1 after an error that was reported to the node.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "collective/group/group.h"
#include "engine/engine.h"
#include "node/worker/worker_flags.h"

namespace lockstep {

// load_engine, or a test's own engine.
using EngineFactory =
    std::function<Result<std::unique_ptr<Engine>>(const EngineOptions& options, Group group)>;

// Lets tests wrap the links to the peers; empty in the program.
using LinkWrapper = std::function<std::unique_ptr<Link>(std::unique_ptr<Link>)>;

int worker_main(const WorkerFlags& flags, const EngineFactory& factory,
                const LinkWrapper& wrap_link = {});

}  // namespace lockstep
