// Chooses the packed form (kernels/packed_matrix.h) of a stored matrix, and where its columns may
// be cut. Used only by packing.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.h"
#include "kernels/packed_matrix.h"

namespace lockstep {

struct PackLayout {
  PackedCodes codes = PackedCodes::kF32;
  PackedScales scales = PackedScales::kNone;
  int32_t code_offset = 0;
  float factor = 1;
  const uint8_t* table = nullptr;
  // Pieces end at multiples of this in the stored matrix; 0: only at the ends of leaves.
  int piece_columns = 0;
  // Blocks end at multiples of kBlockColumns in the stored matrix.
  bool has_block_grid = false;
  bool has_halves = false;
};

// The stored matrix has passed check_stored_matrix().
PackLayout choose_pack_layout(const MatrixSource& source);

// Bytes of the codes of one block of a quantised matrix.
size_t block_code_bytes(PackedCodes codes);

}  // namespace lockstep
