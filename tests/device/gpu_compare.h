// Random operations on a GPU and on the processor, whose words must be equal. Used by
// gpu_kernels_test.cc and gpu_state_test.cc.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "device/device_values.h"
#include "device/vulkan/vulkan_device.h"
#include "kernels/isa.h"
#include "support/flushing.h"
#include "support/stored_matrices.h"

namespace lockstep::testing {

using Random = std::mt19937;

struct Output {
  Slice slice;  // of a kHost buffer
  size_t count;
};
// Queues operations on a device and says what they leave. Both devices get equal random numbers.
using Build = std::function<std::vector<Output>(Device&, Random&)>;

struct GpuOptions {
  bool specialises = true;
  bool flushes = false;
  bool hides_memory = false;
  bool avoids_dot = false;
  uint32_t attention_pages_max = 0;
  uint32_t split_pages_least = 8;
  bool ends_blocks = true;
  uint32_t shuffle_seed = 0;
  bool omits_barriers = false;
};

inline int between(Random& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
}

inline std::vector<float> numbers(Random& random, size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

inline Slice put_numbers(Device& device, Random& random, size_t count,
                         Access access = Access::kDevice) {
  return put(device, numbers(random, count), access);
}

inline Slice put_ints(Device& device, const std::vector<int32_t>& values) {
  const Slice slice = room(device, values.size());
  device.write_ints(slice, values);
  return slice;
}

class Devices {
 public:
  explicit Devices(const GpuOptions& options) : flushes_(options.flushes) {
    const DeviceOptions device{.kernels = available_kernels().back()};
    cpu_ = std::move(open_device(device).value());
    auto gpu =
        gpu::VulkanDevice::open(device,
                                {.tries_kernels = false,
                                 .hides_memory = options.hides_memory,
                                 .flushes = options.flushes,
                                 .avoids_dot = options.avoids_dot,
                                 .shuffle_seed = options.shuffle_seed,
                                 .omits_barriers = options.omits_barriers},
                                gpu::PlanOptions{.specialises = options.specialises,
                                                 .attention_pages_max = options.attention_pages_max,
                                                 .split_pages_least = options.split_pages_least,
                                                 .ends_blocks = options.ends_blocks});
    if (!gpu.ok()) FAIL(gpu.error().message);
    gpu_ = std::move(gpu.value());
  }

  // Checks one case.
  void compare(const Build& build, uint32_t seed) {
    CAPTURE(seed);
    CHECK(differences(build, seed) == 0);
  }
  // Words that differ.
  size_t differences(const Build& build, uint32_t seed) {
    std::vector<uint32_t> expected;
    if (flushes_) {
      const Flushing flushing;
      expected = run(*cpu_, build, seed);
    } else {
      expected = run(*cpu_, build, seed);
    }
    const std::vector<uint32_t> actual = run(*gpu_, build, seed);
    REQUIRE(actual.size() == expected.size());
    size_t different = 0;
    for (size_t i = 0; i < actual.size(); ++i) different += actual[i] != expected[i] ? 1 : 0;
    compared_ += actual.size();
    return different;
  }
  size_t compared() const { return compared_; }

 private:
  static std::vector<uint32_t> run(Device& device, const Build& build, uint32_t seed) {
    Random random(seed);
    const std::vector<Output> outputs = build(device, random);
    const Status status = device.wait();
    if (!status.ok()) FAIL(status.error().message);
    std::vector<uint32_t> words;
    for (const Output& output : outputs) {
      const auto values = device.host(output.slice.buffer).subspan(output.slice.offset);
      for (size_t i = 0; i < output.count; ++i) words.push_back(std::bit_cast<uint32_t>(values[i]));
    }
    return words;
  }

  bool flushes_;
  std::unique_ptr<Device> cpu_, gpu_;
  size_t compared_ = 0;
};

// Leaves with a random tree over them.
inline std::vector<LeafStep> random_steps(Random& random, int columns) {
  std::vector<LeafStep> steps;
  int depth = 0;
  for (int left = columns; left > 0;) {
    const int leaf = steps.size() + 1 == size_t{kLeafStepsMax}
                         ? left
                         : std::min(left, between(random, 1, columns));
    left -= leaf;
    const bool must_end = left == 0 || depth == kTreeDepth - 1;
    const int merges = must_end ? depth : between(random, 0, depth);
    depth -= merges;
    const bool ends = depth == 0 && (must_end || random() % 2 == 0);
    steps.push_back({leaf, merges, ends ? 1 : 0});
    if (!ends) ++depth;
  }
  return steps;
}

inline int subtrees_of(const std::vector<LeafStep>& steps) {
  return static_cast<int>(std::count_if(steps.begin(), steps.end(),
                                        [](const LeafStep& step) { return step.ends_subtree; }));
}

struct Shape {
  int rows = 0;
  int columns = 0;
  std::vector<LeafStep> steps;
};
inline Shape random_shape(Random& random) {
  const int columns = between(random, 1, 600);
  return {between(random, 1, 90), columns, random_steps(random, columns)};
}

// A rectangle of a random stored matrix.
inline MatrixId pack_random(Device& device, Random& random, const FormatCase& format,
                            const Shape& shape) {
  const int row_begin = between(random, 0, 8);
  const int column_begin = between(random, 0, 20);
  const int columns = (column_begin + shape.columns + 511) / 512 * 512;
  const RandomMatrix stored(format, row_begin + shape.rows, columns, random());
  return packed(device, {.stored = stored.matrix,
                         .row_begin = row_begin,
                         .rows = shape.rows,
                         .column_begin = column_begin,
                         .columns = shape.columns,
                         .steps = shape.steps,
                         .keeps_float_input = random() % 4 == 0,
                         .inputs_per_token = 4});
}

inline const FormatCase& any_format(Random& random) {
  static const std::vector<FormatCase> formats = all_format_cases();
  return formats[random() % formats.size()];
}

inline std::vector<MatrixId> pack_experts(Device& device, Random& random, int experts,
                                          const FormatCase& format, const Shape& shape) {
  std::vector<MatrixId> ids;
  for (int i = 0; i < experts; ++i) {
    const RandomMatrix stored(format, shape.rows, (shape.columns + 511) / 512 * 512, random());
    ids.push_back(packed(device, {.stored = stored.matrix,
                                  .rows = shape.rows,
                                  .columns = shape.columns,
                                  .steps = shape.steps,
                                  .inputs_per_token = 4}));
  }
  return ids;
}

inline std::vector<int32_t> random_choices(Random& random, int tokens, int chosen, int experts) {
  std::vector<int32_t> all;
  for (int token = 0; token < tokens; ++token) {
    std::vector<int32_t> order(static_cast<size_t>(experts));
    for (int i = 0; i < experts; ++i) order[static_cast<size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::sort(order.begin(), order.begin() + chosen);
    all.insert(all.end(), order.begin(), order.begin() + chosen);
  }
  return all;
}

// Matrices live as long as the test program, since operations point to them.
template <class Kept>
Kept& keep_forever() {
  static std::vector<std::unique_ptr<Kept>> kept;
  return *kept.emplace_back(std::make_unique<Kept>());
}

// The products of attention's output: of all heads of a token together, or of each. Returns their
// operation.
inline Operation multiply_heads(Device& device, Random& random, const Attention& op, int value_dim,
                                Output& products) {
  const bool together = random() % 2 == 0;
  const int columns = together ? op.heads * value_dim : value_dim;
  Shape shape{between(random, 1, 40), columns, {{columns, 0, 1}}};
  if (together && random() % 2 == 0) shape.steps = random_steps(random, columns);
  const FormatCase& format = any_format(random);
  const int rows_of_token = together ? subtrees_of(shape.steps) : op.heads;
  products.count = static_cast<size_t>(rows_of_token * op.tokens * shape.rows);
  products.slice = put(device, std::vector<float>(products.count), Access::kHost);
  if (together) {
    return Matmul{
        op.output, op.tokens, {{pack_random(device, random, format, shape), products.slice}}};
  }
  std::vector<MatrixId>& matrices = keep_forever<std::vector<MatrixId>>();
  matrices = pack_experts(device, random, op.heads, format, shape);
  return HeadMatmul{.matrices = &matrices,
                    .input = op.output,
                    .input_stride = value_dim,
                    .tokens = op.tokens,
                    .output = products.slice,
                    .output_stride = shape.rows};
}

// The shape of a layer of experts.
struct ExpertSizes {
  int tokens = 0;
  int chosen = 0;
  int hidden = 0;
  int ffn = 0;
};
// Without a result, an activation and all that there may be besides.
inline ExpertsUp random_experts_up(Device& device, Random& random, const ExpertMatrices& matrices,
                                   const ExpertSizes& sizes) {
  const int all = static_cast<int>(matrices.gate.size());
  const int slots = sizes.tokens * sizes.chosen;
  return {.matrices = &matrices,
          .chosen = put_ints(device, random_choices(random, sizes.tokens, sizes.chosen, all)),
          .weights = put_numbers(device, random, static_cast<size_t>(slots)),
          .tokens = sizes.tokens,
          .chosen_count = sizes.chosen,
          .input = put_numbers(device, random, static_cast<size_t>(sizes.tokens * sizes.hidden)),
          .scratch = room(device, static_cast<size_t>(2 * slots * sizes.ffn))};
}

// Pages of a layer, one after the other in a buffer for the host, each with its keys and then its
// values.
struct PagesShape {
  KvKind kind = KvKind::kF32;
  int kv_heads = 0;
  int head_dim = 0;
  int value_dim = 0;

  size_t page_elements() const {
    const size_t head = page_head_stride(kind, head_dim);
    return 2 * static_cast<size_t>(kv_heads) * head / Slice::kElementBytes;
  }
  LayerPages at(Slice state) const {
    return {.kind = kind,
            .keys = state,
            .values = {state.buffer, page_elements() / 2},
            .page_stride = page_elements(),
            .head_dim = head_dim,
            .value_dim = value_dim,
            .kv_heads = kv_heads};
  }
};

}  // namespace lockstep::testing
