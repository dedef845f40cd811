// Fixed answers: checksums of every kernel's output for fixed inputs. They are the same for every
// instruction set, compiler and architecture; changing one changes every model's output. The kernel
// tests compare with them, and so does `lockstep bug-report --first-mac` on a machine on which no
// test ever ran. A table takes some tens of milliseconds; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace lockstep {

struct FixedAnswer {
  const char* kernel;  // "matmul"
  uint64_t expected;   // FNV-1a, 64 bits, over the bytes of the outputs
  uint64_t found;

  bool is_right() const { return found == expected; }
};

// The processor must have the instruction set of `table` (kernels/isa.h).
std::vector<FixedAnswer> fixed_answers(const KernelTable& table);
// The elementary functions (kernels/math.h), which have no table.
FixedAnswer fixed_math_answer();

}  // namespace lockstep
