#include "device/vulkan/spare_gpus.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::gpu {
namespace {

struct Spares {
  std::mutex mutex;
  std::vector<std::unique_ptr<Gpu>> gpus;  // the newest last
};

// Never destroyed: at the process's end drivers may have gone before.
Spares& spares() {
  static Spares* const all = std::make_unique<Spares>().release();
  return *all;
}

std::unique_ptr<Gpu> find_spare(const Gpu::Options& options) {
  Spares& all = spares();
  const std::lock_guard lock(all.mutex);
  const auto found = std::find_if(all.gpus.rbegin(), all.gpus.rend(),
                                  [&](const auto& gpu) { return gpu->has_kernels_of(options); });
  if (found == all.gpus.rend()) return nullptr;
  std::unique_ptr<Gpu> gpu = std::move(*found);
  all.gpus.erase(std::next(found).base());
  return gpu;
}

}  // namespace

Result<std::unique_ptr<Gpu>> take_gpu(const Gpu::Options& options) {
  while (std::unique_ptr<Gpu> gpu = find_spare(options)) {
    if (!gpu->is_usable()) continue;  // it was lost meanwhile
    gpu->reopen(options);
    return gpu;
  }
  return Gpu::open(options);
}

void give_back(std::unique_ptr<Gpu> gpu) {
  if (!gpu->is_usable()) return;
  gpu->free_memory();
  std::unique_ptr<Gpu> oldest;  // destroyed outside the lock
  Spares& all = spares();
  const std::lock_guard lock(all.mutex);
  all.gpus.push_back(std::move(gpu));
  if (all.gpus.size() <= kSpareGpusMax) return;
  oldest = std::move(all.gpus.front());
  all.gpus.erase(all.gpus.begin());
}

}  // namespace lockstep::gpu
