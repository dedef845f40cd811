// Lays out a whole matrix on a team of threads.
#pragma once

#include "base/threads/thread_team.h"
#include "device/packing/packing.h"

namespace lockstep {

// `tiles` has plan.bytes(). Gives pages of the checkpoint's file back once they are read. kCorrupt
// if the matrix holds a NaN.
Status pack_matrix(const MatrixSource& source, const PackPlan& plan, ThreadTeam& team,
                   std::byte* tiles);

}  // namespace lockstep
