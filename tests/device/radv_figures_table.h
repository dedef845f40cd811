// Kernels that radv_kernels_main.cc compiles, and their figures with Mesa 22.3.
#pragma once

#include <array>
#include <cstdint>

#include "device/gpu/plan.h"

namespace lockstep::testing {

struct Figures {
  uint64_t vector_registers;
  uint64_t instructions;
};

inline constexpr size_t kFamilies = 3;

struct KernelCase {
  const char* name;
  gpu::KernelVariant variant;
  int dots;  // v_dot4 instructions: of one block
  int fmas;  // v_fma instructions, where the driver keeps fma(): no more and no less
  std::array<Figures, kFamilies> figures;
};

namespace figures {

using gpu::Kernel;

constexpr gpu::KernelVariant matmul(PackedCodes codes, PackedScales scales, uint32_t parts,
                                    uint32_t shares_terms, uint32_t input) {
  return {
      Kernel::kMatmul,
      {static_cast<uint32_t>(codes), static_cast<uint32_t>(scales), parts, shares_terms, input}};
}
constexpr auto kB4 = PackedCodes::kBits4, kB6 = PackedCodes::kBits6, kB8 = PackedCodes::kBits8,
               kMx = PackedCodes::kTable4, kF8 = PackedCodes::kFp8, kBf = PackedCodes::kBF16;
constexpr auto kF16 = PackedScales::kF16, kSuperMin = PackedScales::kSuperMin,
               kHalves = PackedScales::kSuperHalves, kE8M0 = PackedScales::kE8M0,
               kTile = PackedScales::kTileF32, kNone = PackedScales::kNone;
constexpr uint32_t kOne = gpu::kOneMatrix, kExpert = gpu::kOneExpert, kAll = gpu::kAllExperts;
constexpr uint32_t kPlain = gpu::kPlainInput, kInt = gpu::kIntegerInput, kFlt = gpu::kFloatInput;
constexpr uint32_t kKvF16 = 2, kKvQ8 = 3;
constexpr auto kEmbed4 = static_cast<uint32_t>(kB4), kEmbedF16 = static_cast<uint32_t>(kF16);

}  // namespace figures

// A chain of shared terms has eight fused multiply-adds at a time and one for the rest.
inline constexpr KernelCase kKernelCases[] = {
    {"kBits4 kF16, shared terms",
     figures::matmul(figures::kB4, figures::kF16, figures::kOne, 1, figures::kInt),
     8,
     9,
     {{{36, 334}, {32, 331}, {36, 674}}}},
    {"kBits8 kF16, shared terms",
     figures::matmul(figures::kB8, figures::kF16, figures::kOne, 1, figures::kInt),
     8,
     9,
     {{{36, 339}, {40, 336}, {40, 679}}}},
    {"kBits4 kSuperMin (Q4_K), shared terms",
     figures::matmul(figures::kB4, figures::kSuperMin, figures::kOne, 1, figures::kInt),
     8,
     10,
     {{{48, 390}, {40, 387}, {44, 766}}}},
    {"kBits6 kSuperHalves (Q6_K), shared terms",
     figures::matmul(figures::kB6, figures::kHalves, figures::kOne, 1, figures::kInt),
     8,
     9,
     {{{48, 423}, {40, 418}, {48, 1083}}}},
    {"kTable4 kE8M0 (MXFP4), shared terms",
     figures::matmul(figures::kMx, figures::kE8M0, figures::kOne, 1, figures::kInt),
     8,
     9,
     {{{36, 460}, {32, 434}, {40, 770}}}},
    {"kTable4 kE8M0, one expert, shared terms",
     figures::matmul(figures::kMx, figures::kE8M0, figures::kExpert, 1, figures::kInt),
     8,
     9,
     {{{36, 503}, {32, 476}, {40, 813}}}},
    {"kTable4 kE8M0, all experts, shared terms",
     figures::matmul(figures::kMx, figures::kE8M0, figures::kAll, 1, figures::kInt),
     8,
     9,
     {{{36, 621}, {32, 596}, {40, 930}}}},
    {"kFp8 kTileF32, shared terms",
     figures::matmul(figures::kF8, figures::kTile, figures::kOne, 1, figures::kFlt),
     0,
     31,
     {{{60, 641}, {40, 622}, {32, 505}}}},
    {"kBF16, shared terms",
     figures::matmul(figures::kBf, figures::kNone, figures::kOne, 1, figures::kPlain),
     0,
     9,
     {{{36, 371}, {40, 344}, {32, 685}}}},
    {"kBits4 kF16, items alone",
     figures::matmul(figures::kB4, figures::kF16, figures::kOne, 0, figures::kInt),
     8,
     1,
     {{{36, 264}, {40, 262}, {36, 302}}}},
    {"kBits8 kF16, items alone",
     figures::matmul(figures::kB8, figures::kF16, figures::kOne, 0, figures::kInt),
     8,
     1,
     {{{48, 269}, {40, 267}, {40, 307}}}},
    {"kBits4 kSuperMin (Q4_K), items alone",
     figures::matmul(figures::kB4, figures::kSuperMin, figures::kOne, 0, figures::kInt),
     8,
     2,
     {{{48, 320}, {48, 318}, {44, 393}}}},
    {"kBits6 kSuperHalves (Q6_K), items alone",
     figures::matmul(figures::kB6, figures::kHalves, figures::kOne, 0, figures::kInt),
     8,
     1,
     {{{48, 331}, {40, 328}, {44, 403}}}},
    {"kTable4 kE8M0 (MXFP4), items alone",
     figures::matmul(figures::kMx, figures::kE8M0, figures::kOne, 0, figures::kInt),
     8,
     1,
     {{{36, 380}, {40, 358}, {40, 397}}}},
    {"kTable4 kE8M0, one expert, items alone",
     figures::matmul(figures::kMx, figures::kE8M0, figures::kExpert, 0, figures::kInt),
     8,
     1,
     {{{60, 425}, {48, 407}, {48, 446}}}},
    {"kTable4 kE8M0, all experts, items alone",
     figures::matmul(figures::kMx, figures::kE8M0, figures::kAll, 0, figures::kInt),
     8,
     1,
     {{{60, 544}, {48, 519}, {48, 567}}}},
    {"kFp8 kTileF32, items alone",
     figures::matmul(figures::kF8, figures::kTile, figures::kOne, 0, figures::kFlt),
     0,
     31,
     {{{60, 590}, {40, 574}, {32, 442}}}},
    {"kBF16, items alone",
     figures::matmul(figures::kBf, figures::kNone, figures::kOne, 0, figures::kPlain),
     0,
     9,
     {{{48, 295}, {40, 266}, {36, 607}}}},
    {"embed, kBits4 kF16",
     {gpu::Kernel::kEmbed, {figures::kEmbed4, figures::kEmbedF16}},
     0,
     0,
     {{{12, 127}, {16, 125}, {12, 129}}}},
    {"prepare, integers",
     {gpu::Kernel::kPrepare, {0, 0, gpu::kIntegerInput}},
     0,
     12,
     {{{48, 709}, {48, 688}, {56, 1082}}}},
    {"prepare, floats",
     {gpu::Kernel::kPrepare, {0, 0, gpu::kFloatInput}},
     0,
     0,
     {{{48, 1937}, {40, 1936}, {40, 1959}}}},
    {"norm of a sum", {gpu::Kernel::kNorm, {0, 0, 1}}, 0, 28, {{{12, 371}, {16, 367}, {20, 1343}}}},
    {"norm of a sum, prepares integers",
     {gpu::Kernel::kNorm, {0, 0, 1, figures::kInt}},
     0,
     40,
     {{{48, 1068}, {48, 1043}, {56, 2409}}}},
    {"head_squares", {gpu::Kernel::kHeadSquares, {}}, 0, 0, {{{12, 78}, {8, 77}, {8, 75}}}},
    {"norm_heads", {gpu::Kernel::kNormHeads, {}}, 0, 27, {{{12, 323}, {16, 318}, {20, 1250}}}},
    {"rope", {gpu::Kernel::kRope, {}}, 0, 0, {{{12, 82}, {16, 80}, {12, 75}}}},
    {"rotate", {gpu::Kernel::kRotate, {}}, 0, 0, {{{12, 112}, {16, 109}, {12, 105}}}},
    {"store_kv, F16",
     {gpu::Kernel::kStoreKv, {figures::kKvF16}},
     0,
     0,
     {{{24, 215}, {16, 211}, {16, 216}}}},
    {"store_kv, Q8",
     {gpu::Kernel::kStoreKv, {figures::kKvQ8}},
     0,
     12,
     {{{24, 382}, {24, 377}, {28, 803}}}},
    {"attention, F16",
     {gpu::Kernel::kAttention, {figures::kKvF16}},
     0,
     91,
     {{{48, 1687}, {40, 1651}, {36, 5107}}}},
    {"attention, Q8",
     {gpu::Kernel::kAttention, {figures::kKvQ8}},
     0,
     91,
     {{{60, 1604}, {48, 1546}, {48, 4996}}}},
    {"attention, F16, prepares integers",
     {gpu::Kernel::kAttention, {figures::kKvF16, 0, 0, figures::kInt}},
     0,
     103,
     {{{48, 2236}, {48, 2177}, {56, 6024}}}},
    {"attention, F16, shares pages",
     {gpu::Kernel::kAttention, {figures::kKvF16, 1}},
     0,
     26,
     {{{36, 785}, {32, 764}, {28, 1805}}}},
    {"attention_merge, prepares integers",
     {gpu::Kernel::kAttentionMerge, {0, 0, 0, figures::kInt}},
     0,
     84,
     {{{48, 2174}, {48, 2136}, {56, 5208}}}},
    {"activate, prepares integers",
     {gpu::Kernel::kActivate, {0, 0, 0, figures::kInt}},
     0,
     60,
     {{{48, 1224}, {48, 1200}, {56, 3480}}}},
    {"activate", {gpu::Kernel::kActivate, {}}, 0, 48, {{{24, 535}, {16, 531}, {24, 2420}}}},
    {"route", {gpu::Kernel::kRoute, {}}, 0, 34, {{{12, 735}, {16, 726}, {24, 2060}}}},
    {"pool_key, Q8",
     {gpu::Kernel::kPoolKey, {figures::kKvQ8}},
     0,
     15,
     {{{24, 341}, {16, 332}, {20, 936}}}},
    {"stream_gates", {gpu::Kernel::kStreamGates, {}}, 0, 40, {{{24, 570}, {24, 564}, {28, 2095}}}},
    {"streams, collapse",
     {gpu::Kernel::kStreams, {0, 0, gpu::kCollapse}},
     0,
     1,
     {{{12, 63}, {8, 63}, {12, 102}}}},
    {"streams, update",
     {gpu::Kernel::kStreams, {0, 0, gpu::kUpdate}},
     0,
     8,
     {{{24, 275}, {16, 274}, {24, 589}}}},
    {"elementwise, add",
     {gpu::Kernel::kElementwise, {0, 0, gpu::kAdd}},
     0,
     0,
     {{{12, 33}, {8, 32}, {8, 33}}}},
};

}  // namespace lockstep::testing
