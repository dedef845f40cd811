#include "base/text_hash.h"

#include <bit>
#include <cstring>
#include <random>

namespace lockstep {
namespace {

struct State {
  uint64_t a, b, c, d;

  void round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }
};

// Up to 8 bytes as a number; the first is the lowest.
uint64_t word_of(std::string_view bytes) {
  uint64_t word = 0;
  if (std::endian::native == std::endian::little) {
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return word;
}

struct Key {
  uint64_t first, second;
};

Key random_key() {
  std::random_device device;
  const auto word = [&] { return uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

}  // namespace

uint64_t siphash_1_3(uint64_t key0, uint64_t key1, std::string_view text) {
  State state{key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261,
              key1 ^ 0x7465646279746573};
  const uint64_t size = text.size();
  while (true) {
    const bool is_last = text.size() < 8;
    const uint64_t word = word_of(text.substr(0, 8)) | (is_last ? size << 56 : 0);
    state.d ^= word;
    state.round();
    state.a ^= word;
    if (is_last) break;
    text.remove_prefix(8);
  }
  state.c ^= 0xff;
  for (int i = 0; i < 3; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

size_t TextHash::operator()(std::string_view text) const {
  static const Key key = random_key();
  return static_cast<size_t>(siphash_1_3(key.first, key.second, text));
}

}  // namespace lockstep
