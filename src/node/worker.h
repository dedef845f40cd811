// worker_main: the whole life of a worker process (`lockstep worker --control-fd N`). It is told
// over the control channel which rank it is, forms the group with the other ranks, loads its share
// of the model and works until the node tells it to stop, the group breaks or the node is gone. The
// exit status is 0 after a stop and 1 after an error that the node has been told.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "collective/group.h"
#include "engine/engine.h"

namespace lockstep {

// load_engine, or a test's own engine.
using EngineFactory =
    std::function<Result<std::unique_ptr<Engine>>(const EngineOptions& options, Group group)>;

int worker_main(int control_fd, const EngineFactory& factory);

}  // namespace lockstep
