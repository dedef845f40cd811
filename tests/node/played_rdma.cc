#include "node/played_rdma.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace lockstep {

bool PlayedRdma::play() {
#ifdef __linux__
  const std::string library = std::string(LOCKSTEP_BINARY_DIR) + "/libfakeverbs.so";
  if (::access(library.c_str(), R_OK) != 0) return false;
  wire_.reset(::memfd_create("fake wire", MFD_CLOEXEC));
  if (!wire_.is_open()) return false;
  const std::string file =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(wire_.get());
  ::setenv("LOCKSTEP_VERBS_LIBRARY", library.c_str(), 1);
  ::setenv("LOCKSTEP_FAKE_VERBS_FILE", file.c_str(), 1);
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW);
  if (loaded == nullptr) return false;
  const auto controls = reinterpret_cast<FakeVerbsControls>(::dlsym(loaded, "fake_verbs_controls"));
  objects_of_ = reinterpret_cast<FakeVerbsObjectsOf>(::dlsym(loaded, "fake_verbs_objects_of"));
  if (controls == nullptr || objects_of_ == nullptr) return false;
  controls_ = controls();
#endif
  return is_played();
}

const FakeObjects* PlayedRdma::objects_of(int64_t pid) const {
  return controls_ == nullptr ? nullptr : objects_of_(static_cast<int>(pid));
}

}  // namespace lockstep
