#include "kernels/isa.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

extern const KernelTable kScalarKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
#elif defined(__aarch64__)
extern const KernelTable kNeonKernels;
#endif

namespace {

std::vector<const KernelTable*> detect_kernels() {
  std::vector<const KernelTable*> tables = {&kScalarKernels};
#if defined(__x86_64__)
  // The builtin also asks whether the operating system keeps the wide registers.
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("f16c");
  if (has_avx2) tables.push_back(&kAvx2Kernels);
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    tables.push_back(&kAvx512Kernels);
  }
#elif defined(__aarch64__)
  tables.push_back(&kNeonKernels);
#endif
  return tables;
}

}  // namespace

std::span<const KernelTable* const> available_kernels() {
  static const std::vector<const KernelTable*> tables = detect_kernels();
  return tables;
}

Result<const KernelTable*> choose_kernels() {
  const std::span<const KernelTable* const> tables = available_kernels();
  const char* wish = std::getenv("LOCKSTEP_ISA");
  if (wish == nullptr || *wish == '\0') return tables.back();
  std::string names;
  for (const KernelTable* table : tables) {
    if (std::string_view(table->name) == wish) return table;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", table->name);
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("LOCKSTEP_ISA is '{}' but this machine can run: {}", wish, names)};
}

}  // namespace lockstep
