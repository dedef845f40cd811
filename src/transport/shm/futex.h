// Sleeping on a 32-bit word that several processes share, until it is changed and woken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lockstep {

// Sleeps while the word is `value`, at most `at_most`; may return early.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value, std::chrono::microseconds at_most);
void futex_wake(std::atomic<uint32_t>& word);

}  // namespace lockstep
