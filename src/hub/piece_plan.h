// Who fetches and who keeps which piece of a model, as pure functions that every machine of a
// cluster computes alike from the same numbers; nothing is agreed on by messages. A machine is
// named by its number in the cluster.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/piece_journal.h"

namespace lockstep {

// Of the candidates the one that gets this piece from the hub. When one is lost, only its pieces
// move (highest random weight, Thaler and Ravishankar 1998). -1 without candidates.
int fetcher_of(std::string_view file_hash, uint32_t piece, std::span<const int> candidates);

// A machine that keeps parts of a file, or all of it.
struct PieceHolder {
  int machine = 0;
  std::vector<bool> has;     // by piece
  std::vector<bool> needs;   // what its ranks read, so that it had better keep that; empty: nothing
  uint64_t room_bytes = 0;   // that it can take further pieces in
  bool takes_copies = true;  // else what it has counts, and it is given nothing
};

// Which machines are to keep each piece, on two disks wherever there are two machines with room. Of
// those that have a piece two go on keeping it: who takes no copies (it keeps what it has anyway),
// then who needs it, else by a fixed order of the machines for each piece. So a machine that comes
// moves nothing, and while machines know different things of each other the first in that order
// still never gives a piece up. Where fewer than two have it, it goes to the machine with room that
// keeps the fewest bytes of the file so far, which needs it if one does. Ascending machine numbers
// for each piece.
std::vector<std::vector<int>> copies_of(std::string_view file_hash, PieceCut cut,
                                        std::span<const PieceHolder> holders);

}  // namespace lockstep
