// Sizes at which a software GPU's loops would end early (kTurnsMax in vulkan_device.cc): the same
// bits, or an error, but never other bits.
#include <doctest/doctest.h>

#if defined(LOCKSTEP_HAS_GPU)

#include <cstring>
#include <memory>

#include "device/device_values.h"
#include "device/vulkan/vulkan_device.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "support/stored_matrices.h"

using namespace lockstep;
using lockstep::testing::all_format_cases;
using lockstep::testing::FormatCase;
using lockstep::testing::RandomMatrix;

namespace {

struct BothDevices {
  std::unique_ptr<Device> cpu, gpu;

  BothDevices() {
    const DeviceOptions options{.kernels = available_kernels().back()};
    cpu = std::move(open_device(options).value());
    auto opened = gpu::VulkanDevice::open(options, {}, gpu::PlanOptions{.specialises = false});
    if (!opened.ok()) FAIL(opened.error().message);
    gpu = std::move(opened.value());
  }
};

std::vector<float> played(Device& device, Slice output, size_t count) {
  const Status status = device.wait();
  if (!status.ok()) FAIL(status.error().message);
  const auto values = device.host(output.buffer).first(count);
  return {values.begin(), values.end()};
}

bool have_same_bits(const std::vector<float>& some, const std::vector<float>& others) {
  return some.size() == others.size() &&
         std::memcmp(some.data(), others.data(), some.size() * sizeof(float)) == 0;
}

std::vector<float> attend_long(Device& device, int pages_reached, bool keys_are_rows = false) {
  constexpr int kPages = 3000, kHeadDim = 32;
  constexpr size_t kOfPage = size_t{2} * kPagePositions * kHeadDim;
  Numbers numbers;
  const Slice state = put(device, numbers.take(static_cast<int>(kOfPage) * kPages));
  std::vector<int32_t> list(kPages);
  for (int i = 0; i < kPages; ++i) list[static_cast<size_t>(i)] = i;
  const Slice pages = room(device, list.size()), at = room(device, 1), offset = room(device, 1);
  device.write_ints(pages, list);
  device.write_ints(at, std::vector<int32_t>{kPages * kPagePositions - 1});
  device.write_ints(offset, std::vector<int32_t>{0});
  const Slice output = room(device, kHeadDim, Access::kHost);
  device.queue(Attention{.pages = {.kind = KvKind::kF32,
                                   .keys = state,
                                   .values = {state.buffer, kOfPage / 2},
                                   .page_stride = kOfPage,
                                   .head_dim = kHeadDim,
                                   .value_dim = kHeadDim,
                                   .kv_heads = 1},
                         .query = put(device, numbers.take(kHeadDim)),
                         .positions = at,
                         .page_lists = pages,
                         .list_offsets = offset,
                         .pages_reached = pages_reached,
                         .tokens = 1,
                         .heads = 1,
                         .heads_per_kv = 1,
                         .scale = 0.125f,
                         .output = output,
                         .keys_are_rows = keys_are_rows});
  return played(device, output, kHeadDim);
}

// Over as many entries as there are positions, and over some positions again.
std::vector<float> attend_to_entries(Device& device) {
  constexpr int kPages = 200, kHeadDim = 512;
  constexpr size_t kOfPage = size_t{kPagePositions} * kHeadDim;
  Numbers numbers;
  const Slice state = put(device, numbers.take(static_cast<int>(kOfPage) * kPages));
  std::vector<int32_t> list(kPages);
  for (int i = 0; i < kPages; ++i) list[static_cast<size_t>(i)] = i;
  const LayerPages pages{.kind = KvKind::kF32,
                         .values = state,
                         .page_stride = kOfPage,
                         .head_dim = kHeadDim,
                         .value_dim = kHeadDim,
                         .kv_heads = 1};
  CompressedAttention op{.rows = pages,
                         .entries = pages,
                         .pool = 1,
                         .query = put(device, numbers.take(kHeadDim)),
                         .positions = room(device, 1),
                         .page_lists = room(device, list.size()),
                         .list_offsets = room(device, 1),
                         .entry_offsets = room(device, 1),
                         .tokens = 1,
                         .heads = 1,
                         .window = 1000,
                         .scale = 0.125f,
                         .output = room(device, kHeadDim, Access::kHost)};
  device.write_ints(op.positions, std::vector<int32_t>{kPages * kPagePositions - 1});
  device.write_ints(op.page_lists, list);
  for (const Slice& offset : {op.list_offsets, op.entry_offsets}) {
    device.write_ints(offset, std::vector<int32_t>{0});
  }
  device.queue(op);
  return played(device, op.output, kHeadDim);
}

// A product with one leaf of so many columns; an error if the device refuses the matrix.
Result<std::vector<float>> multiply(Device& device, const FormatCase& format, int columns,
                                    int tokens) {
  constexpr int kRows = 3;
  const RandomMatrix stored(format, kRows, columns, 7);
  const std::vector<LeafStep> steps{{columns, 0, 1}};
  const MatrixId id = TRY(
      device.pack({.stored = stored.matrix, .rows = kRows, .columns = columns, .steps = steps}));
  Numbers numbers;
  const auto count = static_cast<size_t>(tokens * kRows);
  const Slice output = room(device, count, Access::kHost);
  Matmul op{put(device, numbers.take(tokens * columns)), tokens, {}, 1};
  op.products[0] = {id, output};
  device.queue(op);
  return played(device, output, count);
}

}  // namespace

TEST_CASE("attention over very many pages has the same bits") {
  BothDevices devices;
  const std::vector<float> expected = attend_long(*devices.cpu, 0);
  for (const int pages_reached : {0, 3000, 4096}) {  // one workgroup; 1,024 that share
    CHECK(have_same_bits(expected, attend_long(*devices.gpu, pages_reached)));
  }
  CHECK(have_same_bits(attend_long(*devices.cpu, 0, true), attend_long(*devices.gpu, 3000, true)));
}

TEST_CASE("attention over very many entries has the same bits") {
  BothDevices devices;
  CHECK(have_same_bits(attend_to_entries(*devices.cpu), attend_to_entries(*devices.gpu)));
}

TEST_CASE("a matrix with very many columns has the same bits or is refused") {
  BothDevices devices;
  int equal = 0, refused = 0;
  for (const FormatCase& format : all_format_cases()) {
    for (const int columns : {90 * 1024, 400 * 1024}) {
      for (const int tokens : {1, 9}) {
        CAPTURE(format.name);
        CAPTURE(columns);
        const auto actual = multiply(*devices.gpu, format, columns, tokens);
        if (!actual.ok()) {
          CHECK(actual.error().code == ErrorCode::kUnsupported);
          CHECK(columns > 90 * 1024);
          ++refused;
          continue;
        }
        CHECK(have_same_bits(multiply(*devices.cpu, format, columns, tokens).value(),
                             actual.value()));
        ++equal;
      }
    }
  }
  CHECK(equal > 0);
  MESSAGE(equal << " products have the same bits, " << refused << " are refused");
}

#endif
