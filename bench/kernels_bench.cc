// How close matmul comes to what the memory delivers (decode) and to what the processor multiplies
// (prefill), for each instruction set. usage: kernels_bench [--json] [--megabytes N] [--isa NAME].
// Prints a table, or one JSON line.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "base/thread_team.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "tensor/dtype.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kColumns = 2048;
constexpr int kRepeats = 5;  // the best counts: a shared machine only ever takes time away

struct Options {
  bool json = false;
  size_t megabytes = 1024;  // of weights; far more than the caches hold
  std::string_view isa;     // all if empty
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

// Two words in one register of any processor, so that reading is not limited by instructions even
// at -O2.
using WordPair = uint64_t __attribute__((vector_size(16)));

// Adds pairs of words from four streams: enough of them to keep the memory busy.
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

double read_gb_s(ThreadTeam& team, const std::vector<uint64_t>& words) {
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

Speed matmul_speed(ThreadTeam& team, const KernelTable& table, DType type, int tokens,
                   const std::vector<uint64_t>& words, size_t weight_bytes) {
  const size_t tile_bytes = size_t{kColumns} * kLanes * dtype_bytes(type);
  const int tiles = static_cast<int>(weight_bytes / tile_bytes);
  const std::vector<float> input(static_cast<size_t>(tokens) * kColumns, 0.5f);
  std::vector<float> output(static_cast<size_t>(tokens) * static_cast<size_t>(tiles) * kLanes);
  const auto matmul = type == DType::kF32   ? table.matmul_f32
                      : type == DType::kF16 ? table.matmul_f16
                                            : table.matmul_bf16;
  const LeafStep step = {kColumns, 0, 1};
  const double seconds = seconds_of([&] {
    team.for_each_chunk(tiles, 8, [&](int begin, int end) {
      matmul({words.data(), tiles * kLanes, kColumns, begin, end, &step, 1, input.data(), kColumns,
              tokens, output.data(), static_cast<size_t>(tiles) * kLanes, 0});
    });
  });
  const double products = static_cast<double>(output.size()) * kColumns;
  return {static_cast<double>(tiles) * static_cast<double>(tile_bytes) / seconds * 1e-9,
          2 * products / seconds * 1e-9};
}

// Decode attention: 8 heads share one key/value head of 128, 4096 positions, so that pages come
// from the L2 or L3.
double attention_gb_s(const KernelTable& table) {
  constexpr int kHeadDim = 128;
  constexpr int kPages = 64;
  const size_t stride = page_head_stride(kHeadDim);
  std::vector<float> keys(kPages * stride, 0.01f), values(kPages * stride, 0.01f);
  std::vector<int32_t> page_list(kPages);
  for (int i = 0; i < kPages; ++i) page_list[static_cast<size_t>(i)] = i;
  std::vector<float> query(8 * kHeadDim, 0.1f), output(8 * kHeadDim);
  const double seconds = seconds_of([&] {
    for (int i = 0; i < 20; ++i) {
      table.attention({.pages = {keys.data(), values.data(), stride, kHeadDim, kHeadDim, 1},
                       .page_list = page_list.data(),
                       .position = kPages * kPagePositions - 1,
                       .query = query.data(),
                       .heads = 8,
                       .scale = 0.1f,
                       .output = output.data()});
    }
  });
  return 20.0 * static_cast<double>((keys.size() + values.size()) * sizeof(float)) / seconds * 1e-9;
}

double barrier_us(ThreadTeam& team) {
  constexpr int kRounds = 10000;
  return seconds_of([&] {
           for (int i = 0; i < kRounds; ++i) team.run([](int) {});
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
  // Every bf16 and f16 of this pattern is a small finite number.
  const std::vector<uint64_t> words(bytes / 8, 0x3c013c023c033c04u);
  std::vector<int> team_sizes = {1};
  if (available_core_count() > 1) team_sizes.push_back(available_core_count());
  for (int threads : team_sizes) {
    ThreadTeam team({.threads = threads});
    const std::string suffix = fmt::format("_t{}", threads);
    report.add("barrier" + suffix, barrier_us(team), "us");
    const double read_before = read_gb_s(team, words);
    report.add("read" + suffix, read_before, "gb_s");
    for (const KernelTable* table : available_kernels()) {
      if (!options.isa.empty() && options.isa != table->name) continue;
      const bool is_scalar = table == available_kernels().front();
      const size_t decode_bytes = is_scalar ? size_t{8} << 20 : bytes;
      const size_t prefill_bytes = is_scalar ? size_t{1} << 20 : std::min(bytes, size_t{32} << 20);
      for (DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
        const std::string name = fmt::format("{}_{}", table->name, dtype_name(type));
        const Speed decode = matmul_speed(team, *table, type, 1, words, decode_bytes);
        const double read = read_gb_s(team, words);  // next to it, since such machines drift
        report.add(name + "_decode" + suffix, decode.gb_s, "gb_s");
        report.add(name + "_decode_share_of_read" + suffix, 100 * decode.gb_s / read, "percent");
        const Speed batch = matmul_speed(team, *table, type, 8, words, prefill_bytes);
        report.add(name + "_8_tokens" + suffix, batch.gflop_s, "gflop_s");
        const Speed prefill = matmul_speed(team, *table, type, 128, words, prefill_bytes);
        report.add(name + "_128_tokens" + suffix, prefill.gflop_s, "gflop_s");
      }
      if (threads == 1) {
        report.add(fmt::format("{}_attention", table->name), attention_gb_s(*table), "gb_s");
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
    } else {
      fmt::print(stderr, "usage: kernels_bench [--json] [--megabytes N] [--isa NAME]\n");
      return 2;
    }
  }
  if (options.megabytes < 2) options.megabytes = 2;
  lockstep::measure(options);
  return 0;
}
