#include "device/open/device_probe.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "tensor/ggml_blocks.h"

namespace lockstep {
namespace {

constexpr int kRows = 8192, kColumns = 4096;
constexpr int kBlockOf = 32;  // columns in a block of Q4_0
constexpr int kBytesOfBlock = 18;
constexpr size_t kMatrixBytes = size_t{kRows} * kColumns / kBlockOf * kBytesOfBlock;
constexpr int kRounds = 3;
constexpr double kChainMax = 64;    // pairs of small operations
constexpr int kChainColumns = 256;  // and rows
constexpr int kTokensMax = 512;
constexpr int kTokensFirst = 8;
constexpr int kTokensFactor = 4;

// Blocks with a scale of 2^-6 and different codes: their values do not change the speed.
std::vector<std::byte> stored_weights() {
  std::vector<std::byte> bytes(kMatrixBytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t place = i % kBytesOfBlock;
    bytes[i] = std::byte(place == 0 ? 0 : place == 1 ? 0x24 : (i * 131) % 251);
  }
  return bytes;
}

MatrixSource source_of(std::span<const std::byte> bytes, int rows, int columns) {
  StoredMatrix stored{.format = StoredFormat::kGguf, .rows = rows, .columns = columns};
  stored.row_bytes = static_cast<size_t>(columns) / kBlockOf * kBytesOfBlock;
  stored.codes = bytes.first(stored.row_bytes * static_cast<size_t>(rows));
  stored.gguf_type = static_cast<uint32_t>(GgmlType::kQ4_0);
  return {.stored = stored, .rows = rows, .columns = columns, .steps = {{columns, 0, 1}}};
}

class Prober {
 public:
  Prober(Device& device, const DeviceProbe& probe) : device_(device), probe_(probe) {}

  Result<DeviceSpeed> run() {
    TRY(prepare());
    DeviceSpeed speed;
    TRY(measure_chain(speed));
    TRY(measure_reading(speed));
    TRY(measure_prompt(speed));
    return speed;
  }

 private:
  Status prepare() {
    weights_ = stored_weights();
    small_ = TRY(device_.pack(source_of(weights_, kChainColumns, kChainColumns)));
    large_.push_back(TRY(device_.pack(source_of(weights_, kRows, kColumns))));
    input_ = {TRY(device_.allocate(sizeof(float) * kTokensMax * kColumns, Access::kDevice))};
    output_ = {TRY(device_.allocate(sizeof(float) * kTokensMax * kRows, Access::kDevice))};
    const std::vector<float> ones(size_t{kTokensMax} * kColumns, 1.0f);
    device_.write(input_, std::as_bytes(std::span(ones)));
    device_.write(output_, std::as_bytes(std::span(ones).first(kChainColumns)));
    return device_.wait();
  }

  // Seconds of what `queue` queues; the first time it also compiles kernels.
  Result<double> once(const std::function<void()>& queue) {
    const double started = now();
    queue();
    TRY(device_.wait());
    return now() - started;
  }
  double now() const {
    if (probe_.now) return probe_.now();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  // Once more at least, and more often if that takes no longer than wanted.
  Result<double> best(const std::function<void()>& queue) {
    double least = TRY(once(queue)), all = 0;
    for (int i = 0; i < kRounds && all < probe_.measure_s; ++i) {
      const double seconds = TRY(once(queue));
      least = std::min(least, seconds);
      all += seconds;
    }
    return least;
  }

  void multiply(MatrixId matrix, int tokens) {
    device_.queue(Matmul{input_, tokens, {{matrix, output_}}});
  }

  // Norms and products in turn, each of the other's result.
  void queue_chain(int pairs) {
    for (int i = 0; i < pairs; ++i) {
      device_.queue(RmsNorm{.x = output_,
                            .weight = {input_.buffer, kColumns},
                            .tokens = 1,
                            .columns = kChainColumns,
                            .epsilon = 1e-5f,
                            .y = input_,
                            .stride = kChainColumns});
      multiply(small_, 1);
    }
  }

  Status measure_chain(DeviceSpeed& speed) {
    const double one = TRY(best([this] { queue_chain(1); }));
    const double fitting = std::clamp(probe_.measure_s / std::max(one, 1e-9), 2.0, kChainMax);
    const int pairs = static_cast<int>(fitting);
    const double all = TRY(best([&] { queue_chain(pairs); }));
    const double pair = std::max(0.0, all - one) / (pairs - 1);
    speed.kernel_us = pair / 2 * 1e6;
    speed.wait_us = std::max(0.0, one - pair) * 1e6;
    return Ok{};
  }

  // Each matrix once, so that no cache helps.
  Status measure_reading(DeviceSpeed& speed) {
    const double one = TRY(best([this] { multiply(large_.front(), 1); }));
    const auto fitting = static_cast<double>(probe_.bytes_max) / kMatrixBytes;
    const double count = std::min(fitting, probe_.measure_s / std::max(one, 1e-9));
    while (static_cast<double>(large_.size()) + 1 <= count) {
      large_.push_back(TRY(device_.pack(source_of(weights_, kRows, kColumns))));
    }
    double seconds = one;
    if (large_.size() > 1) {
      seconds = TRY(best([this] {
        for (const MatrixId matrix : large_) multiply(matrix, 1);
      }));
    }
    const auto matrices = static_cast<double>(large_.size());
    const double overhead = (matrices * speed.kernel_us + speed.wait_us) / 1e6;
    const double reading = std::max(seconds - overhead, seconds / 2);
    speed.read_gb_s = matrices * kMatrixBytes / reading / 1e9;
    return Ok{};
  }

  Status measure_prompt(DeviceSpeed& speed) {
    int tokens = kTokensFirst;
    double seconds = 0;
    while (true) {
      seconds = TRY(best([&] { multiply(large_.front(), tokens); }));
      if (tokens == kTokensMax || kTokensFactor * seconds > probe_.measure_s) break;
      tokens = std::min(kTokensMax, tokens * kTokensFactor);
    }
    speed.operations_s = 2.0 * kRows * kColumns * tokens / std::max(seconds, 1e-9);
    return Ok{};
  }

  Device& device_;
  const DeviceProbe probe_;
  std::vector<std::byte> weights_;
  MatrixId small_{};
  std::vector<MatrixId> large_;
  Slice input_;   // (kTokensMax, kColumns)
  Slice output_;  // (kTokensMax, kRows)
};

}  // namespace

Result<DeviceSpeed> probe_device(Device& device, const DeviceProbe& probe) {
  return Prober(device, probe).run();
}

}  // namespace lockstep
