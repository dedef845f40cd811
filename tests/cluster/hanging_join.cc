// Preloaded by tests/cluster/stop_test.py: once the file that HANG_WHEN names exists, pthread_join
// never returns, as with a thread that hangs in the kernel.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int pthread_join(pthread_t thread, void** result) {
  const char* const file = std::getenv("HANG_WHEN");
  while (file != nullptr && ::access(file, F_OK) == 0) ::pause();
  using Join = int (*)(pthread_t, void**);
  static const Join join = reinterpret_cast<Join>(::dlsym(RTLD_NEXT, "pthread_join"));
  return join(thread, result);
}
