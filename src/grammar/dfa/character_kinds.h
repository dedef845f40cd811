// CharacterKinds: a coarse set of characters in 128 bits: ASCII characters have a bit each, all
// others share one. Used by VocabularyTrie and TokenMasks to skip subtrees. Values; any thread.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace lockstep {

class CharacterKinds {
 public:
  // Kinds 2 to 127 are ASCII characters.
  static constexpr uint8_t kBeyondAscii = 0;  // multibyte, or its first bytes at the end
  static constexpr uint8_t kOdd = 1;          // invalid UTF-8, and the characters 0 and 1

  void add(uint8_t kind) { words_[kind / 64] |= uint64_t{1} << (kind % 64); }
  void add(const CharacterKinds& other) {
    words_[0] |= other.words_[0];
    words_[1] |= other.words_[1];
  }
  void remove(uint8_t kind) { words_[kind / 64] &= ~(uint64_t{1} << (kind % 64)); }
  bool has(uint8_t kind) const { return (words_[kind / 64] >> (kind % 64) & 1) != 0; }
  // The number of kinds that `other` lacks.
  int count_beyond(const CharacterKinds& other) const {
    return std::popcount(words_[0] & ~other.words_[0]) +
           std::popcount(words_[1] & ~other.words_[1]);
  }
  bool is_within(const CharacterKinds& other) const {
    return ((words_[0] & ~other.words_[0]) | (words_[1] & ~other.words_[1])) == 0;
  }

 private:
  std::array<uint64_t, 2> words_{};
};

}  // namespace lockstep
