// A child's end with its parent: for workers whose node is killed while no thread of theirs can
// notice that their channel was closed.
#pragma once

namespace lockstep {

// From now on this process is killed when its parent ends: at once under Linux (PR_SET_PDEATHSIG,
// with the thread that started it), and under macOS (a thread with a kqueue). Other systems have no
// such means. Called once, early, by the thread that will end last.
void die_with_parent();

}  // namespace lockstep
