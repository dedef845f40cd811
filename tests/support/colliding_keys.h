// Texts made to fall into one chain of a hash table, for tests that this costs nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace lockstep {

// Keys for a JSON object: their hashes, Boost.JSON's FNV-1a, agree in the lowest 12 bits. The salt
// of an object's table is its address, whose lowest 12 bits are known where the C library maps each
// large allocation by itself.
inline std::vector<std::string> colliding_keys(size_t count) {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);  // and no longer what earlier tests made of it
#endif
  constexpr std::string_view kLetters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr uint64_t kPrime = 0x100000001B3;
  constexpr uint64_t kSalt = 16;  // of a mapping, after the C library's own head
  const auto letters = [&](char first, size_t number) {
    std::string text(1, first);
    for (; number > 0; number /= kLetters.size()) text += kLetters[number % kLetters.size()];
    return text;
  };
  std::vector<std::string> keys;
  for (size_t i = 0; keys.size() < count; ++i) {
    const std::string begin = letters('k', i) + "_";
    uint64_t hash = 0xcbf29ce484222325 + kSalt;
    for (const char c : begin) hash = (static_cast<uint64_t>(c) ^ hash) * kPrime;
    for (const char c : kLetters) {
      const uint64_t next = (static_cast<uint64_t>(c) ^ hash) * kPrime;
      for (const char d : kLetters) {
        if (((static_cast<uint64_t>(d) ^ next) & 0xFFF) != 0) continue;
        if (keys.size() < count) keys.push_back(begin + c + d);
      }
    }
  }
  return keys;
}

// Texts of one length with the same std::hash in libstdc++ (MurmurHash64A with a fixed seed), all
// 64 bits of it. The hash mixes eight bytes by an invertible function and adds them by xor. Mixed,
// these two blocks differ in the highest bit alone, so that a second such pair cancels it.
inline std::vector<std::string> murmur_collisions(size_t count) {
  constexpr std::string_view kOne = "it;`zmt4it;`zmt4";
  constexpr std::string_view kOther = "it~F\xdf\x87\xcc\xa5it~F\xdf\x87\xcc\xa5";
  size_t blocks = 1;
  while (size_t{1} << blocks < count) ++blocks;
  std::vector<std::string> texts(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t bit = 0; bit < blocks; ++bit) texts[i] += (i >> bit & 1) != 0 ? kOther : kOne;
  }
  return texts;
}

inline std::string object_of(const std::vector<std::string>& keys) {
  std::string text = "{";
  for (const std::string& key : keys) text += (text.size() > 1 ? ",\"" : "\"") + key + "\":1";
  return text + "}";
}

}  // namespace lockstep
