// Which machine fetches and which keep each piece of a model, as pure functions that every machine
// of a cluster evaluates to the same result from the same numbers, without messages. Machines are
// identified by their numbers in the cluster.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/files/piece_journal.h"

namespace lockstep {

// The candidate that gets this piece from the hub. When one is lost, only its pieces move (highest
// random weight, Thaler and Ravishankar 1998). -1 without candidates.
int fetcher_of(std::string_view file_hash, uint32_t piece, std::span<const int> candidates);

// A machine that keeps parts of a file, or all of it.
struct PieceHolder {
  int machine = 0;
  std::vector<bool> has;     // by piece
  std::vector<bool> needs;   // read by its ranks, so better kept here; empty: none
  uint64_t room_bytes = 0;   // for further pieces
  bool takes_copies = true;  // false: its pieces count, and it is given none
};

// Which machines are to keep each piece: two disks if there are two machines with room. Two of a
// piece's holders keep it: first those that take no copies (they keep their pieces anyway), then
// those that need it, then by an order of the machines fixed for each piece. So a new machine moves
// nothing, and while machines have different views of each other the first in that order still
// never gives a piece up. With fewer than two holders, it goes to the machine with room that keeps
// the fewest bytes of the file so far, one that needs it if any. Ascending machine numbers for each
// piece.
std::vector<std::vector<int>> copies_of(std::string_view file_hash, PieceCut cut,
                                        std::span<const PieceHolder> holders);

}  // namespace lockstep
