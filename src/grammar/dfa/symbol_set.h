// A set of symbols, code points or bytes, as sorted ranges that neither touch nor overlap.
// Immutable values; used by the regex front end and all other code with character classes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace lockstep {

inline constexpr uint32_t kCodePointMax = 0x10FFFF;

struct SymbolRange {
  uint32_t first;
  uint32_t last;  // inclusive
  bool operator==(const SymbolRange&) const = default;
};

class SymbolSet {
 public:
  SymbolSet() = default;
  SymbolSet(std::initializer_list<SymbolRange> ranges) : SymbolSet(std::vector(ranges)) {}
  explicit SymbolSet(std::vector<SymbolRange> ranges);  // in any order

  // Every Unicode scalar value: code points without surrogates.
  static const SymbolSet& scalar_values();

  const std::vector<SymbolRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(uint32_t symbol) const;

  SymbolSet united(const SymbolSet& other) const;
  SymbolSet intersected(const SymbolSet& other) const;
  SymbolSet without(const SymbolSet& other) const;
  bool operator==(const SymbolSet&) const = default;

 private:
  std::vector<SymbolRange> ranges_;
};

}  // namespace lockstep
