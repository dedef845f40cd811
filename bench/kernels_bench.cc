// How close matmul comes to the memory's bandwidth (decode) and to the processor's arithmetic
// throughput (prefill), for each instruction set. usage: kernels_bench [--json] [--megabytes N]
// [--isa NAME] [--format NAME] [--decode]. Prints a table, or one JSON line.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine/machine.h"
#include "base/threads/thread_team.h"
#include "device/memory.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kColumns = 2048;
constexpr int kRepeats = 5;  // the best counts: sharing a machine only ever adds time

struct Options {
  bool json = false;
  size_t megabytes = 1024;  // of weights; far more than the caches hold
  std::string_view isa;     // all if empty
  std::string_view format;  // all if empty
  bool only_decode = false;
};

double seconds_of(auto&& work) {
  double best = 1e30;
  for (int i = 0; i < kRepeats; ++i) {
    const Clock::time_point begin = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

// Two words in one register on any processor, so that reading is not limited by instructions even
// at -O2.
using WordPair = uint64_t __attribute__((vector_size(16)));

// Adds pairs of words from four streams: enough to keep the memory busy.
uint64_t sum_words(const WordPair* pairs, size_t count) {
  constexpr size_t kStreams = 4;
  constexpr size_t kPairsPerLine = 4;
  const size_t part = count / kStreams / kPairsPerLine * kPairsPerLine;
  WordPair sums[kStreams] = {};
  for (size_t i = 0; i < part; i += kPairsPerLine) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const WordPair* from = pairs + stream * part + i;
      __builtin_prefetch(from + 128);  // 2 KiB ahead
      sums[stream] += (from[0] + from[1]) + (from[2] + from[3]);
    }
  }
  const WordPair sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return sum[0] + sum[1];
}

double read_gb_s(ThreadTeam& team, std::span<const uint64_t> words) {
  constexpr size_t kPart = size_t{1} << 17;  // words
  std::vector<uint64_t> sums(words.size() / kPart);
  const double seconds = seconds_of([&] {
    team.for_each_chunk(static_cast<int>(sums.size()), 1, [&](int begin, int end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        const uint64_t* from = words.data() + i * kPart;
        sums[i] = sum_words(reinterpret_cast<const WordPair*>(from), kPart / 2);
      }
    });
  });
  return static_cast<double>(sums.size() * kPart * 8) / seconds * 1e-9;
}

struct Speed {
  double gb_s;
  double gflop_s;
};

// A packed form of matrices, and the leaves that its columns are cut into.
struct Format {
  const char* name;
  PackedCodes codes;
  PackedScales scales;
  bool has_integer_input;
  size_t code_bits;
  int piece_columns;
  int leaves = 1;
};

using enum PackedCodes;
using S = PackedScales;
constexpr Format kFormats[] = {
    {"f32", kF32, S::kNone, false, 32, 0},
    {"bf16", kBF16, S::kNone, false, 16, 0},
    {"f16", kF16, S::kNone, false, 16, 0},
    {"q8_0", kBits8, S::kF16, true, 8, 32},
    {"mlx8", kBits8, S::kBF16Bias, true, 8, 64},
    {"q6_k", kBits6, S::kSuperHalves, true, 6, 256},
    {"mlx6", kBits6, S::kBF16Bias, true, 6, 64},
    {"q5_k", kBits5, S::kSuperMin, true, 5, 256},
    {"q4_0", kBits4, S::kF16, true, 4, 32},
    {"q4_0_cut", kBits4, S::kF16, true, 4, 32, 16},
    {"q4_0_exact", kBits4, S::kF16, false, 4, 32},
    {"q4_k", kBits4, S::kSuperMin, true, 4, 256},
    {"q4_k_exact", kBits4, S::kSuperMin, false, 4, 256},
    {"mlx4", kBits4, S::kBF16Bias, true, 4, 64},
    {"mxfp4", kTable4, S::kE8M0, true, 4, 32},
    {"nvfp4", kTable4, S::kE4M3Halves, true, 4, 32},
    {"q3_k", kBits3, S::kSuperHalves, true, 3, 256},
    {"mlx3", kBits3, S::kBF16Bias, true, 3, 64},
    {"q2_k", kBits2, S::kSuperMinHalves, true, 2, 256},
    {"mlx2", kBits2, S::kBF16Bias, true, 2, 64},
    {"fp8", kFp8, S::kF32, false, 8, 128},
    {"mxfp8", kFp8, S::kE8M0, false, 8, 32},
};

using Words = std::span<const uint64_t>;

// A matrix of `format` made of the bytes of `words`: as many tiles as fill `weight_bytes`.
struct BenchMatrix {
  std::vector<LeafStep> steps;
  std::vector<uint16_t> piece_blocks;
  PackedMatrix matrix;
  int tiles;

  BenchMatrix(const Format& format, Words words, size_t weight_bytes) {
    static constexpr uint8_t kTable[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                           12, 11, 10, 9,  8,  6,  4,  0};
    const size_t code_bytes = size_t{kColumns} * kLanes * format.code_bits / 8;
    const int pieces = format.piece_columns == 0 ? 0 : kColumns / format.piece_columns;
    const int blocks_of_piece = format.piece_columns / kBlockColumns;
    const ScaleBytes bytes = scale_bytes(format.scales);
    const size_t tile_bytes =
        code_bytes + static_cast<size_t>(pieces) *
                         (bytes.of_head + static_cast<size_t>(blocks_of_piece) * bytes.of_block);
    for (int leaf = 0; leaf < format.leaves; ++leaf) {
      const bool is_last = leaf + 1 == format.leaves;
      const int merges = std::countr_one(static_cast<unsigned>(leaf));
      steps.push_back({kColumns / format.leaves, merges, is_last ? 1 : 0, pieces / format.leaves});
    }
    piece_blocks.assign(static_cast<size_t>(pieces), static_cast<uint16_t>(blocks_of_piece));
    tiles = static_cast<int>(weight_bytes / tile_bytes);
    matrix = {.codes = format.codes,
              .scales = format.scales,
              .has_integer_input = format.has_integer_input,
              .rows = tiles * kLanes,
              .columns = kColumns,
              .code_offset = format.codes == PackedCodes::kTable4 ? 12 : 0,
              .factor = 0.5f,
              .table = kTable,
              .tiles = reinterpret_cast<const std::byte*>(words.data()),
              .tile_bytes = tile_bytes,
              .scales_at = code_bytes,
              .piece_blocks = piece_blocks.data(),
              .block_count = pieces * blocks_of_piece,
              .steps = steps.data(),
              .step_count = static_cast<int32_t>(steps.size())};
  }
};

// The input of a matrix, prepared in the form it requires.
std::vector<std::byte> input_of(const KernelTable& table, const PackedMatrix& matrix, int tokens,
                                size_t& stride) {
  const std::vector<float> values(static_cast<size_t>(tokens) * kColumns, 0.5f);
  const auto blocks_max = static_cast<size_t>(matrix.block_count);
  stride = is_by_column(matrix.codes) ? kColumns * sizeof(float)
           : matrix.has_integer_input ? blocks_max * sizeof(InputBlock8)
                                      : blocks_max * sizeof(InputBlockF);
  std::vector<std::byte> input(stride * static_cast<size_t>(tokens));
  std::vector<BlockColumns> blocks;
  for (int i = 0; i < matrix.block_count; ++i) blocks.push_back({i * kBlockColumns, kBlockColumns});
  const PrepareArgs args = {values.data(), kColumns,    blocks.data(), matrix.block_count, 0,
                            tokens,        input.data()};
  if (is_by_column(matrix.codes)) {
    std::memcpy(input.data(), values.data(), input.size());
  } else if (matrix.has_integer_input) {
    table.prepare_integers(args);
  } else {
    table.prepare_floats(args);
  }
  return input;
}

Speed matmul_speed(ThreadTeam& team, const KernelTable& table, const Format& format, int tokens,
                   Words words, size_t weight_bytes) {
  const BenchMatrix bench(format, words, weight_bytes);
  size_t input_stride = 0;
  const std::vector<std::byte> input = input_of(table, bench.matrix, tokens, input_stride);
  const auto rows = static_cast<size_t>(bench.matrix.rows);
  std::vector<float> output(static_cast<size_t>(tokens) * rows);
  const MatmulPart part = {&bench.matrix, input.data(), input_stride};
  const double seconds = seconds_of([&] {
    team.for_each_chunk(bench.tiles, 8, [&](int begin, int end) {
      table.matmul({&part, 1, begin, end, tokens, output.data(), rows, 0});
    });
  });
  const double products = static_cast<double>(output.size()) * kColumns;
  return {static_cast<double>(bench.tiles) * static_cast<double>(bench.matrix.tile_bytes) /
              seconds * 1e-9,
          2 * products / seconds * 1e-9};
}

// Microseconds to convert 8192 activations to integers.
double prepare_us(const KernelTable& table) {
  constexpr int kBlocks = 256;
  const std::vector<float> values(size_t{kBlocks} * kBlockColumns, 0.5f);
  std::vector<InputBlock8> output(kBlocks);
  std::vector<BlockColumns> blocks;
  for (int i = 0; i < kBlocks; ++i) blocks.push_back({i * kBlockColumns, kBlockColumns});
  return seconds_of([&] {
           for (int i = 0; i < 100; ++i) {
             table.prepare_integers(
                 {values.data(), 0, blocks.data(), kBlocks, 0, 1, output.data()});
           }
         }) /
         100 * 1e6;
}

// Microseconds to read a row of 8192 columns of 4 bits.
double embed_us(const KernelTable& table) {
  constexpr int kBlocks = 256;
  const size_t tile_bytes = size_t{kBlocks} * (256 + 64);
  const std::vector<std::byte> tile(tile_bytes, std::byte{0x3c});
  const std::vector<uint16_t> piece_blocks(kBlocks, 1);
  const LeafStep step = {kBlocks * kBlockColumns, 0, 1, kBlocks};
  const PackedMatrix matrix = {.codes = PackedCodes::kBits4,
                               .scales = PackedScales::kBF16Bias,
                               .has_integer_input = true,
                               .rows = kLanes,
                               .columns = kBlocks * kBlockColumns,
                               .tiles = tile.data(),
                               .tile_bytes = tile_bytes,
                               .scales_at = size_t{kBlocks} * 256,
                               .piece_blocks = piece_blocks.data(),
                               .block_count = kBlocks,
                               .steps = &step,
                               .step_count = 1};
  std::vector<BlockColumns> blocks;
  for (int i = 0; i < kBlocks; ++i) blocks.push_back({i * kBlockColumns, kBlockColumns});
  std::vector<float> output(size_t{kBlocks} * kBlockColumns);
  const int32_t row = 5;
  return seconds_of([&] {
           for (int i = 0; i < 100; ++i) {
             table.embed({&matrix, blocks.data(), &row, 0, 1, output.data(), 0});
           }
         }) /
         100 * 1e6;
}

struct StoredKind {
  const char* name;
  KvKind kind;
};
constexpr StoredKind kStoredKinds[] = {
    {"f32", KvKind::kF32}, {"bf16", KvKind::kBF16}, {"f16", KvKind::kF16}, {"q8", KvKind::kQ8}};

// One layer's attention of Llama 3 8B for a new token at position 8191: 8 key/value heads of 128,
// each for 4 heads.
double attention_us(const KernelTable& table, KvKind kind) {
  constexpr int kHeadDim = 128, kPages = 128, kKvHeads = 8, kHeads = 4;
  const size_t stride = kKvHeads * page_head_stride(kind, kHeadDim);
  // In every kind numbers of medium size.
  std::vector<std::byte> keys(kPages * stride, std::byte{0x3c}), values = keys;
  std::vector<int32_t> page_list(kPages);
  for (int i = 0; i < kPages; ++i) page_list[static_cast<size_t>(i)] = i;
  std::vector<float> query(kHeads * kHeadDim, 0.1f), output(kHeads * kHeadDim);
  return seconds_of([&] {
           for (int head = 0; head < kKvHeads; ++head) {
             table.attention(
                 {.pages = {kind, keys.data(), values.data(), stride, kHeadDim, kHeadDim, kKvHeads},
                  .kv_head = head,
                  .page_list = page_list.data(),
                  .position = kPages * kPagePositions - 1,
                  .query = query.data(),
                  .heads = kHeads,
                  .scale = 0.1f,
                  .output = output.data()});
           }
         }) *
         1e6;
}

// A section of nothing: what an operation costs that wakes the team.
double section_us(ThreadTeam& team) {
  constexpr int kRounds = 10000;
  return seconds_of([&] {
           for (int i = 0; i < kRounds; ++i) team.for_each_chunk(team.size(), 1, [](int, int) {});
         }) /
         kRounds * 1e6;
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {
    if (!json_) fmt::print("{:<44}{:>10}  unit\n", "measure", "value");
  }
  ~Report() {
    if (json_) fmt::print("{{{}}}\n", line_);
  }
  void add(const std::string& name, double value, std::string_view unit) {
    if (!json_) fmt::print("{:<44}{:>10.2f}  {}\n", name, value, unit);
    line_ += fmt::format("{}\"{}_{}\": {:.4g}", line_.empty() ? "" : ", ", name, unit, value);
  }

 private:
  bool json_;
  std::string line_;
};

void measure(const Options& options) {
  Report report(options.json);
  const size_t bytes = options.megabytes << 20;
  // Every f32, f16, bf16 and 8-bit number in this pattern is normal and of medium size.
  const auto memory = DeviceMemory::allocate(bytes);  // huge pages, as a model's weights have
  if (!memory.ok()) {
    fmt::print(stderr, "kernels_bench: {}\n", memory.error().message);
    std::exit(1);
  }
  uint64_t* const first_word = reinterpret_cast<uint64_t*>(memory.value().data());
  std::fill_n(first_word, bytes / 8, 0x3c3d3e3f3f3e3d3cu);
  const Words words(first_word, bytes / 8);
  std::vector<int> team_sizes = {1};
  if (available_core_count() > 1) team_sizes.push_back(available_core_count());
  for (int threads : team_sizes) {
    ThreadTeam team({.threads = threads});
    const std::string suffix = fmt::format("_t{}", threads);
    report.add("section" + suffix, section_us(team), "us");
    const double read_before = read_gb_s(team, words);
    report.add("read" + suffix, read_before, "gb_s");
    for (const KernelTable* table : available_kernels()) {
      if (!options.isa.empty() && options.isa != table->name) continue;
      const bool is_scalar = table == available_kernels().front();
      const size_t decode_bytes = is_scalar ? std::min(bytes, size_t{8} << 20) : bytes;
      const size_t prefill_bytes = is_scalar ? size_t{1} << 20 : std::min(bytes, size_t{32} << 20);
      for (const Format& format : kFormats) {
        if (!options.format.empty() && options.format != format.name) continue;
        const std::string name = fmt::format("{}_{}", table->name, format.name);
        const Speed decode = matmul_speed(team, *table, format, 1, words, decode_bytes);
        const double read = read_gb_s(team, words);  // next to it, since such machines drift
        report.add(name + "_decode" + suffix, decode.gb_s, "gb_s");
        report.add(name + "_decode_share_of_read" + suffix, 100 * decode.gb_s / read, "percent");
        if (options.only_decode) continue;
        const Speed batch = matmul_speed(team, *table, format, 8, words, prefill_bytes);
        report.add(name + "_8_tokens" + suffix, batch.gflop_s, "gflop_s");
        const Speed batch_64 = matmul_speed(team, *table, format, 64, words, prefill_bytes);
        report.add(name + "_64_tokens" + suffix, batch_64.gflop_s, "gflop_s");
        const Speed prefill = matmul_speed(team, *table, format, 128, words, prefill_bytes);
        report.add(name + "_128_tokens" + suffix, prefill.gflop_s, "gflop_s");
      }
      if (threads == 1 && !options.only_decode) {
        for (const StoredKind& of : kStoredKinds) {
          report.add(fmt::format("{}_attention_8k_{}", table->name, of.name),
                     attention_us(*table, of.kind), "us");
        }
        report.add(fmt::format("{}_prepare_8192", table->name), prepare_us(*table), "us");
        report.add(fmt::format("{}_embed_8192", table->name), embed_us(*table), "us");
      }
    }
  }
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
      options.megabytes = std::strtoul(argv[++i], nullptr, 10);
    } else if (argument == "--isa" && i + 1 < argc) {
      options.isa = argv[++i];
    } else if (argument == "--format" && i + 1 < argc) {
      options.format = argv[++i];
    } else if (argument == "--decode") {
      options.only_decode = true;
    } else {
      fmt::print(stderr,
                 "usage: kernels_bench [--json] [--megabytes N] [--isa NAME] [--format NAME] "
                 "[--decode]\n");
      return 2;
    }
  }
  if (options.megabytes < 2) options.megabytes = 2;
  lockstep::measure(options);
  return 0;
}
