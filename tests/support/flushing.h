// Threads that flush subnormal operands and results to zero, as GPUs may.
#pragma once

#include <cstdint>

namespace lockstep {

#if defined(__x86_64__)
inline constexpr uint64_t kFlush = 0x8040;  // MXCSR: flush to zero, denormals are zero
inline uint64_t float_control() {
  return __builtin_ia32_stmxcsr();
}
inline void set_float_control(uint64_t value) {
  __builtin_ia32_ldmxcsr(static_cast<unsigned>(value));
}
#elif defined(__aarch64__)
inline constexpr uint64_t kFlush = 1u << 24;  // FPCR.FZ: operands and results
inline uint64_t float_control() {
  uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
inline void set_float_control(uint64_t value) {
  asm volatile("msr fpcr, %0" ::"r"(value));
}
#endif

// Flushes in this thread and in those that it starts meanwhile: they inherit the control register.
class Flushing {
 public:
  Flushing() : before_(float_control()) { set_float_control(before_ | kFlush); }
  ~Flushing() { set_float_control(before_); }
  Flushing(const Flushing&) = delete;
  Flushing& operator=(const Flushing&) = delete;

 private:
  uint64_t before_;
};

}  // namespace lockstep
