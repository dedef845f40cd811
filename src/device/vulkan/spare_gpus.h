// The Gpus that this process has used and needs no more, with the kernels that they have compiled:
// the next device on the same GPU takes one of them and compiles only what is new to it. A driver
// may need seconds for a model's kernels, software GPUs some twenty.
#pragma once

#include <memory>

#include "device/vulkan/gpu.h"

namespace lockstep::gpu {

// So many are kept, the newest. Each holds its kernels and no memory for tensors.
inline constexpr size_t kSpareGpusMax = 8;

// A spare Gpu whose kernels are those that `options` want, or a new one. From any thread.
Result<std::unique_ptr<Gpu>> take_gpu(const Gpu::Options& options);
// Frees its memory and keeps it; destroys it if it is lost or has work to do. From any thread.
void give_back(std::unique_ptr<Gpu> gpu);

}  // namespace lockstep::gpu
