#include "kernels/isa.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

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
extern const KernelTable kNeonDotprodKernels;
extern const KernelTable kNeonI8mmKernels;
#endif

namespace {

#if defined(__x86_64__)
// Leaf 1, ECX bit 29 (Intel SDM 3, CPUID). clang 14's __builtin_cpu_supports lacks this name.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 29)) != 0;
}
#elif defined(__aarch64__)
#if defined(__APPLE__)
bool has_feature(const char* name) {
  int has = 0;
  size_t bytes = sizeof(has);
  return sysctlbyname(name, &has, &bytes, nullptr, 0) == 0 && has != 0;
}
#endif

// FEAT_DotProd: dot products of bytes.
bool has_dotprod() {
#if defined(__linux__)
  constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP in asm/hwcap.h
  return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
#elif defined(__APPLE__)
  return has_feature("hw.optional.arm.FEAT_DotProd");
#else
  return false;
#endif
}

// FEAT_I8MM: products of small matrices of bytes.
bool has_i8mm() {
#if defined(__linux__)
  constexpr unsigned long kI8mm = 1ul << 13;  // HWCAP2_I8MM in asm/hwcap.h
  return (getauxval(AT_HWCAP2) & kI8mm) != 0;
#elif defined(__APPLE__)
  return has_feature("hw.optional.arm.FEAT_I8MM");
#else
  return false;
#endif
}
#endif

std::vector<const KernelTable*> detect_kernels() {
  std::vector<const KernelTable*> tables = {&kScalarKernels};
#if defined(__x86_64__)
  // The builtin also checks that the operating system saves the wide registers.
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (has_avx2) tables.push_back(&kAvx2Kernels);
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni")) {
    tables.push_back(&kAvx512Kernels);
  }
#elif defined(__aarch64__)
  tables.push_back(&kNeonKernels);
  if (has_dotprod()) tables.push_back(&kNeonDotprodKernels);
  if (has_dotprod() && has_i8mm()) tables.push_back(&kNeonI8mmKernels);
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
