#include "base/process/child_environment.h"

#include <algorithm>

extern char** environ;

namespace lockstep {
namespace {

constexpr std::string_view kNames[] = {
    // User and places: for finding programs, and for tools' settings.
    "HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
    // The language of tools' output.
    "LANG", "LANGUAGE",
    // The dynamic linker's, needed to start a program at an unusual place.
    "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES",
    // The C library's allocator, and the sanitizers.
    "GLIBC_TUNABLES", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS",
    // A container's choice of GPUs.
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES",
    // Ours: kernels, RDMA links, including the library that simulates RDMA in tests.
    "LOCKSTEP_ISA", "LOCKSTEP_VERBS_LIBRARY", "LOCKSTEP_VERBS_QP", "LOCKSTEP_FAKE_VERBS_FILE",
    "LOCKSTEP_FAKE_VERBS_MODE", "LOCKSTEP_FAKE_VERBS_ADDRESSES"};

constexpr std::string_view kPrefixes[] = {
    "LC_",
    "MALLOC_",
    // Drivers of RDMA devices below libibverbs.
    "IBV_",
    "MLX4_",
    "MLX5_",
    "RDMAV_",
    // Vulkan's loader and the drivers below it, and where they look and keep compiled kernels.
    "VK_",
    "MESA_",
    "RADV_",
    "XDG_",
};

}  // namespace

bool reaches_children(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<char*> child_environment() {
  std::vector<char*> kept;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (reaches_children(text.substr(0, text.find('=')))) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

}  // namespace lockstep
