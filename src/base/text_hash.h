// TextHash: for hash tables whose keys come from outside, so that nobody can make keys that
// collide. SipHash-1-3 with a key that is random in each process: std::hash of a text has a fixed
// seed, and its collisions can be computed. The order of such a table differs between processes, so
// nothing that a client sees may depend on it. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const;
};

// The function itself (Aumasson and Bernstein, 2012), for its test.
uint64_t siphash_1_3(uint64_t key0, uint64_t key1, std::string_view text);

}  // namespace lockstep
