// The ranks of a world as stages of a pipeline: ranks in order, the same number in each stage. The
// ranks of a stage form their own Group; rank j of a stage passes its work to rank j of the next,
// and the first rank of the last stage sends the chosen tokens to world rank 0. A small value type
// with links; used by the engine.
#pragma once

#include <memory>

#include "collective/group/group.h"

namespace lockstep {

struct StagePlace {
  int stage = 0;
  int stages = 1;
  int rank = 0;  // in the stage
  int ranks = 1;

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == stages; }
  int world_rank() const { return stage * ranks + rank; }
  int world_rank_of(int other_rank) const { return stage * ranks + other_rank; }
};

// For world rank `rank` of `size`; `stages` must divide `size`.
StagePlace stage_place(int rank, int size, int stages);

// The links of a world that one rank uses outside its stage. Two of them may be the same link in
// opposite directions.
struct StageLinks {
  Group::Options group;                      // of its stage
  std::vector<std::unique_ptr<Link>> links;  // owns the links below
  Link* previous = nullptr;                  // null in the first stage
  Link* next = nullptr;                      // null in the last stage
  Link* choices = nullptr;  // between world rank 0 and the first rank of the last stage; else null
};

// Takes the links of `world` apart; those that no stage uses are closed.
StageLinks split_world(Group::Options world, int stages);

}  // namespace lockstep
