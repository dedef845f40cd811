// The plan of a token on a GPU, for published models: dispatches, barriers and bytes stay within
// their limits. docs/internals/gpu.md has the table.
#include "model/forward/gpu_plan.h"

#include <doctest/doctest.h>

#include <string>

#include "model/load/open_model.h"
#include "model/load/shape_model.h"

using namespace lockstep;

namespace {

struct Case {
  const char* shape;
  const char* format;
  uint64_t dispatches_most;  // of a layer
  double bytes_most;         // of the bytes that a token must read
};

GpuTokenPlan plan_of(const Case& model, int position) {
  const auto opened = open_model(shape_model_text({.shape = model.shape, .format = model.format}));
  REQUIRE_MESSAGE(opened.ok(), opened.error().message);
  auto plan = plan_token_on_gpu(opened.value().config, opened.value().source, position);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  return std::move(plan.value());
}

}  // namespace

TEST_CASE(
    "a token of a published model needs few dispatches and reads little besides its weights") {
  for (const Case& model :
       {Case{"llama-3.3-70b", "q4_0", 9, 1.03}, Case{"qwen3-235b-a22b", "mlx4", 11, 1.03},
        Case{"gpt-oss-120b", "mxfp4", 13, 1.03}, Case{"deepseek-v3.1", "mlx4", 14, 1.03},
        Case{"deepseek-v3.1", "fp8", 14, 1.03}, Case{"qwen3.5-27b", "mlx4", 17, 1.03},
        Case{"qwen3-next-80b-a3b", "mlx4", 27, 1.05}}) {
    CAPTURE(model.shape);
    const GpuTokenPlan plan = plan_of(model, 1000);
    for (size_t i = 1; i < plan.layers.size(); ++i) {  // the first one has the embedding's too
      CAPTURE(i);
      std::string kernels;
      for (const gpu::Kernel kernel : plan.layers[i].kernels) {
        kernels += std::to_string(static_cast<int>(kernel)) + " ";
      }
      CAPTURE(kernels);
      CHECK(plan.layers[i].dispatches <= model.dispatches_most);
      CHECK(plan.layers[i].barriers <= plan.layers[i].dispatches);
    }
    const gpu::DispatchCounts all = plan.sum();
    CHECK(static_cast<double>(all.bytes) <=
          model.bytes_most * static_cast<double>(plan.needed_bytes));
    CHECK(static_cast<double>(all.bytes) >= 0.99 * static_cast<double>(plan.needed_bytes));
  }
}
