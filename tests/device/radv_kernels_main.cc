// Compiles the kernels of GPUs for three of AMD's and compares registers and instructions with
// those recorded in radv_figures_table.h; prints them as docs/internals/gpu.md has them. Needs no
// GPU. It ends with 77 where Mesa's driver for AMD's GPUs is not installed, which ctest counts as
// skipped.
//   radv_kernels [--assembly NAME]     prints also the assembly of kernels whose names contain NAME
#include <fmt/format.h>

#include <string_view>

#include "device/radv_compiler.h"
#include "device/radv_figures_table.h"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

constexpr int kSkipped = 77;
constexpr std::string_view kRecordedWith = "Mesa 22.3.";

struct Family {
  const char* name;
  bool fuses;  // the driver keeps fma(), else our kernels make it by float64
};
constexpr std::array<Family, kFamilies> kFamilyList{
    {{"gfx1100", true}, {"navi21", true}, {"vega20", false}}};

// A little room: other releases of a compiler place registers differently.
uint64_t with_room(uint64_t recorded, uint64_t least) {
  return recorded + std::max(least, recorded / 20);
}

// The fault of a kernel; empty: it has none.
std::string complaint(const KernelCase& kernel, const CompiledKernel& compiled, size_t family,
                      bool compares) {
  const Figures& recorded = kernel.figures[family];
  if (compiled.spilled_registers > 0 || compiled.scratch_bytes > 0) return "spills registers";
  const int dots = compiled.lines_with({"v_dot4"});
  if (dots < kernel.dots) return fmt::format("has {} v_dot4, not {}", dots, kernel.dots);
  if (!compares) return {};
  const int fmas = compiled.lines_with({"v_fma"});
  if (kFamilyList[family].fuses && fmas != kernel.fmas) {
    return fmt::format("has {} v_fma, not {}", fmas, kernel.fmas);
  }
  if (compiled.vector_registers > with_room(recorded.vector_registers, 4)) {
    return fmt::format("takes {} vector registers, recorded are {}", compiled.vector_registers,
                       recorded.vector_registers);
  }
  if (compiled.instructions > with_room(recorded.instructions, 8)) {
    return fmt::format("has {} instructions, recorded are {}", compiled.instructions,
                       recorded.instructions);
  }
  return {};
}

struct Outcome {
  std::array<std::vector<std::string>, kFamilies> cells;  // of the table, for each kernel
  int complaints = 0;
};

Status compile_all(size_t family, std::string_view assembly_of, Outcome& outcome) {
  const Family& of = kFamilyList[family];
  const auto compiler = TRY(RadvCompiler::open(of.name));
  const bool compares = compiler->driver().starts_with(kRecordedWith);
  if (!compares) {
    fmt::print("{} is not {}x: only spills and dot products are checked\n", compiler->driver(),
               kRecordedWith);
  }
  for (const KernelCase& kernel : kKernelCases) {
    const CompiledKernel compiled = TRY(compiler->compile(
        kernel.variant, {.float64 = !of.fuses, .dot = true}, {.fma = of.fuses ? 0u : 1u}));
    outcome.cells[family].push_back(
        fmt::format("{} / {}", compiled.vector_registers, compiled.instructions));
    const std::string wrong = complaint(kernel, compiled, family, compares);
    if (!wrong.empty()) {
      fmt::print("{} for {} {}\n", kernel.name, of.name, wrong);
      ++outcome.complaints;
    }
    const bool is_named = std::string_view(kernel.name).find(assembly_of) != std::string_view::npos;
    if (!assembly_of.empty() && is_named) {
      fmt::print("{} for {}:\n{}\n", kernel.name, of.name, compiled.assembly);
    }
  }
  return Ok{};
}

void print_table(const Outcome& outcome) {
  fmt::print("| kernel | gfx1100 | navi21 | vega20 |\n| --- | ---: | ---: | ---: |\n");
  for (size_t i = 0; i < std::size(kKernelCases); ++i) {
    fmt::print("| {} | {} | {} | {} |\n", kKernelCases[i].name, outcome.cells[0][i],
               outcome.cells[1][i], outcome.cells[2][i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view assembly_of =
      argc == 3 && std::string_view(argv[1]) == "--assembly" ? argv[2] : "";
  Outcome outcome;
  for (size_t family = 0; family < kFamilies; ++family) {
    const Status status = compile_all(family, assembly_of, outcome);
    if (status.ok()) continue;
    fmt::print("{}\n", status.error().message);
    return status.error().code == ErrorCode::kUnsupported ? kSkipped : 1;
  }
  print_table(outcome);
  return outcome.complaints == 0 ? 0 : 1;
}
