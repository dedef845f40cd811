// worker_main: the whole life of a worker process (`lockstep worker --control-fd N`). It is told
// over the control channel which rank it is, on its command line what only its machine knows
// (node/worker_flags.h), and loads its share of the model. Then it joins one
// epoch after the other: it forms the group with the other ranks and works until the epoch ends;
// what it has loaded stays. The process ends when the node tells it to stop or is gone, or when the
// rank itself fails. The exit status is 0 after a stop and 1 after an error that the node has been
// told.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "collective/group.h"
#include "engine/engine.h"
#include "node/worker_flags.h"

namespace lockstep {

// load_engine, or a test's own engine.
using EngineFactory =
    std::function<Result<std::unique_ptr<Engine>>(const EngineOptions& options, Group group)>;

// What tests put between a rank and its peers; empty in the program.
using LinkWrapper = std::function<std::unique_ptr<Link>(std::unique_ptr<Link>)>;

int worker_main(const WorkerFlags& flags, const EngineFactory& factory,
                const LinkWrapper& wrap_link = {});

}  // namespace lockstep
