// RadvCompiler: Mesa's driver for AMD's GPUs as a compiler of our kernels, on a machine without
// such a GPU (its "null device"): how many registers and instructions a kernel takes. Used by
// radv_kernels_main.cc. It sets variables of the environment, which Vulkan's loader and the driver
// read, so it is for programs of one thread that use no other GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/gpu/plan.h"
#include "device/vulkan/api.h"
#include "device/vulkan/kernel_code.h"
#include "device/vulkan/pipeline.h"

namespace lockstep::testing {

// A compiled kernel.
struct CompiledKernel {
  uint64_t vector_registers = 0;
  uint64_t scalar_registers = 0;
  uint64_t spilled_registers = 0;
  uint64_t scratch_bytes = 0;  // of arrays that did not fit into registers, and of spilled ones
  uint64_t shared_bytes = 0;
  uint64_t subgroups = 0;  // at a time on a SIMD
  uint64_t instructions = 0;
  std::string assembly;

  // Lines of the assembly that contain one of these.
  int lines_with(const std::vector<std::string>& mnemonics) const;
};

class RadvCompiler {
 public:
  // `family` as in RADV_FORCE_FAMILY: "gfx1100". kUnsupported where the driver is not installed.
  static Result<std::unique_ptr<RadvCompiler>> open(const std::string& family);
  ~RadvCompiler();
  RadvCompiler(const RadvCompiler&) = delete;
  RadvCompiler& operator=(const RadvCompiler&) = delete;

  const std::string& driver() const { return driver_; }  // "Mesa 22.3.6"
  Result<CompiledKernel> compile(const gpu::KernelVariant& variant,
                                 const gpu::KernelFeatures& features,
                                 const gpu::ArithmeticConstants& arithmetic);

 private:
  RadvCompiler() = default;
  Status find_device();
  Status open_device();
  CompiledKernel figures_of(VkPipeline pipeline) const;
  std::string assembly_of(VkPipeline pipeline) const;

  gpu::VulkanApi api_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::string driver_;
};

}  // namespace lockstep::testing
