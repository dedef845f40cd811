// How fast stored matrices are packed for the kernels, for each format: bytes of the checkpoint per
// second on one thread, into memory that is already mapped ("warm") and into new memory ("fresh",
// as while loading). usage: packing_bench [--json] [--megabytes N] [--columns N]. Prints a table,
// or one JSON line.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "device/packing/packing.h"
#include "tensor/ggml_blocks.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRepeats = 5;  // the best counts: sharing a machine only ever adds time
// Tiles that are packed at a time, as by a device whose threads share a matrix.
constexpr int kTilesAtOnce = 4;

struct Options {
  bool json = false;
  size_t megabytes = 256;  // of each matrix; far more than the caches hold
  int columns = 4096;      // rows a power of two apart are the hardest on the caches
};

struct Format {
  std::string name;
  StoredMatrix stored;
  size_t code_bits;  // per column, without separately stored scales
};

std::vector<Format> formats() {
  using enum StoredFormat;
  std::vector<Format> list = {
      {"plain BF16", {.format = kPlain, .scale_type = DType::kBF16}, 16},
      {"plain F32", {.format = kPlain, .scale_type = DType::kF32}, 32},
  };
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    list.push_back({fmt::format("affine {}", bits),
                    {.format = kAffine, .bits = bits, .group = 64, .scale_type = DType::kBF16},
                    static_cast<size_t>(bits)});
  }
  list.push_back({"FP8 blocks", {.format = kFp8, .group = 128, .row_group = 128}, 8});
  list.push_back({"MXFP4", {.format = kFp4, .group = 32, .scale_type = DType::kF8E8M0}, 4});
  list.push_back({"NVFP4", {.format = kFp4, .group = 16, .scale_type = DType::kF8E4M3}, 4});
  list.push_back(
      {"packed 4", {.format = kPackedInt, .bits = 4, .group = 32, .scale_type = DType::kBF16}, 4});
  list.push_back(
      {"GPTQ 4", {.format = kGptq, .bits = 4, .group = 128, .scale_type = DType::kF16}, 4});
  list.push_back({"AWQ", {.format = kAwq, .bits = 4, .group = 128, .scale_type = DType::kF16}, 4});
  for (const GgmlBlock& block : kGgmlBlocks) {
    if (block.bits == 0) continue;
    const auto bytes = static_cast<size_t>(block.bytes),
               columns = static_cast<size_t>(block.columns);
    // Some do not have a whole number of bits; the rows have whole bytes.
    list.push_back({fmt::format("GGUF {}", block.name),
                    {.format = kGguf, .gguf_type = static_cast<uint32_t>(block.type)},
                    bytes * 8 / columns});
  }
  return list;
}

// Parts of a matrix with arbitrary contents: the values make no difference here.
struct Parts {
  std::vector<std::byte> codes, scales, zeros;
};

size_t row_bytes_of(const Format& format, size_t columns) {
  if (format.stored.format != StoredFormat::kGguf) return columns * format.code_bits / 8;
  const GgmlBlock& block = *find_ggml_block(format.stored.gguf_type);
  return columns / static_cast<size_t>(block.columns) * static_cast<size_t>(block.bytes);
}

StoredMatrix fill(const Format& format, const Options& options, Parts& parts) {
  StoredMatrix stored = format.stored;
  const auto columns = static_cast<size_t>(options.columns);
  stored.row_bytes = row_bytes_of(format, columns);
  const size_t rows = (options.megabytes << 20) / stored.row_bytes / 256 * 256;
  stored.rows = static_cast<int>(rows);
  stored.columns = options.columns;
  parts.codes.resize(rows * stored.row_bytes);
  uint32_t state = 1;
  for (std::byte& byte : parts.codes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  stored.codes = parts.codes;
  if (stored.group > 0) {
    const size_t groups = columns / static_cast<size_t>(stored.group);
    parts.scales.assign(rows * groups * dtype_bytes(stored.scale_type), std::byte{0x3c});
    stored.scales = stored.biases = parts.scales;
    if (stored.format == StoredFormat::kGptq || stored.format == StoredFormat::kAwq) {
      parts.zeros.assign(rows * groups / 2, std::byte{0x77});
      stored.zeros = parts.zeros;
    }
  }
  return stored;
}

void pack_all(const MatrixSource& source, const PackPlan& plan, std::byte* tiles) {
  const int count = tile_count(plan.matrix.rows);
  for (int tile = 0; tile < count; tile += kTilesAtOnce) {
    pack_tiles(source, plan, tile, std::min(tile + kTilesAtOnce, count), tiles);
  }
}

struct Speed {
  double warm_gb_s;
  double fresh_gb_s;
};

Speed packing_speed(const Format& format, const Options& options) {
  Parts parts;
  const StoredMatrix stored = fill(format, options, parts);
  const MatrixSource source{
      stored, 0, stored.rows, 0, stored.columns, false, {{stored.columns, 0, 1}}};
  const Result<PackPlan> plan = plan_packing(source, false);
  LOCKSTEP_CHECK(plan.ok());
  const size_t bytes = plan.value().bytes();
  double warm = 1e30, fresh = 1e30;
  for (int i = 0; i < kRepeats; ++i) {
    // Too large for the heap, so it gets new pages each time.
    const auto tiles = std::make_unique_for_overwrite<std::byte[]>(bytes);
    for (double* best : {&fresh, &warm}) {
      const Clock::time_point begin = Clock::now();
      pack_all(source, plan.value(), tiles.get());
      *best = std::min(*best, std::chrono::duration<double>(Clock::now() - begin).count());
    }
  }
  const double source_gb =
      static_cast<double>(parts.codes.size() + parts.scales.size() + parts.zeros.size()) * 1e-9;
  return {source_gb / warm, source_gb / fresh};
}

void measure(const Options& options) {
  std::string line;
  if (!options.json) fmt::print("{:<16}{:>12}{:>12}\n", "format", "warm GB/s", "fresh GB/s");
  for (const Format& format : formats()) {
    const Speed speed = packing_speed(format, options);
    if (!options.json) {
      fmt::print("{:<16}{:>12.2f}{:>12.2f}\n", format.name, speed.warm_gb_s, speed.fresh_gb_s);
    }
    line += fmt::format("{}\"{}\": {{\"warm_gb_s\": {:.4g}, \"fresh_gb_s\": {:.4g}}}",
                        line.empty() ? "" : ", ", format.name, speed.warm_gb_s, speed.fresh_gb_s);
  }
  if (options.json) fmt::print("{{{}}}\n", line);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--json") {
      options.json = true;
    } else if (argument == "--megabytes" && i + 1 < argc) {
      options.megabytes = std::max(1ul, std::strtoul(argv[++i], nullptr, 10));
    } else if (argument == "--columns" && i + 1 < argc) {
      options.columns = std::max(1, std::atoi(argv[++i]) / 256) * 256;
    } else {
      fmt::print(stderr, "usage: packing_bench [--json] [--megabytes N] [--columns N]\n");
      return 2;
    }
  }
  lockstep::measure(options);
  return 0;
}
