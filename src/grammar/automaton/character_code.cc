#include "grammar/automaton/character_code.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace lockstep {
namespace {

enum class Digits { kUtf8Lead, kUtf8Tail, kHex };

// One byte of a code: `bits` bits of the value, the highest first; or the fixed `text`.
struct Level {
  int bits;
  Digits digits;
  uint32_t offset;  // added to the value of the bits before it is written
  std::string_view text;
};

// Builds one shared tail for equal sets of values, so that \p{L} stays small.
class Coder {
 public:
  Coder() : dfa_{{Dfa::State{}, Dfa::State{true, {}}}} {}

  // Adds the values of `ranges`, written by `levels`, as edges of `state`.
  void add(uint32_t state, const std::vector<SymbolRange>& ranges,
           const std::vector<Level>& levels) {
    if (ranges.empty()) return;
    uint32_t below = 0;
    for (const Level& level : levels) below += static_cast<uint32_t>(level.bits);
    add_level(state, ranges, levels, 0, below);
  }

  uint32_t new_state() {
    dfa_.states.emplace_back();
    return static_cast<uint32_t>(dfa_.states.size() - 1);
  }
  void add_edge(uint32_t state, uint8_t byte, uint32_t target) {
    dfa_.states[state].edges.push_back({byte, byte, target});
  }
  Dfa take() { return std::move(dfa_); }

  static constexpr uint32_t kStart = 0;
  static constexpr uint32_t kEnd = 1;

 private:
  using Key = std::vector<uint32_t>;  // levels left, then ranges

  void add_level(uint32_t state, const std::vector<SymbolRange>& ranges,
                 const std::vector<Level>& levels, size_t index, uint32_t bits) {
    const Level& level = levels[index];
    if (!level.text.empty()) {
      for (const char c : level.text.substr(0, level.text.size() - 1)) {
        const uint32_t next = new_state();
        add_edge(state, static_cast<uint8_t>(c), next);
        state = next;
      }
      const uint32_t next = tail(ranges, levels, index + 1, bits);
      add_edge(state, static_cast<uint8_t>(level.text.back()), next);
      return;
    }
    const uint32_t rest = bits - static_cast<uint32_t>(level.bits);
    for (uint32_t digit = 0; digit < (1U << level.bits); ++digit) {
      const uint32_t first = digit << rest;
      const uint32_t last = first + ((1U << rest) - 1);
      std::vector<SymbolRange> part;
      for (const SymbolRange range : ranges) {
        if (range.last < first || range.first > last) continue;
        part.push_back({std::max(range.first, first) - first, std::min(range.last, last) - first});
      }
      if (part.empty()) continue;
      write(state, level, digit, tail(part, levels, index + 1, rest));
    }
  }

  uint32_t tail(const std::vector<SymbolRange>& ranges, const std::vector<Level>& levels,
                size_t index, uint32_t bits) {
    if (index == levels.size()) return kEnd;
    Key key;
    for (size_t i = index; i < levels.size(); ++i) {
      key.push_back(static_cast<uint32_t>(levels[i].bits));
      key.push_back(static_cast<uint32_t>(levels[i].digits));
      key.push_back(levels[i].offset);
      key.push_back(static_cast<uint32_t>(levels[i].text.size()));
    }
    for (const SymbolRange range : ranges) {
      key.push_back(range.first);
      key.push_back(range.last);
    }
    const auto known = tails_.find(key);
    if (known != tails_.end()) return known->second;
    const uint32_t state = new_state();
    tails_.emplace(std::move(key), state);
    add_level(state, ranges, levels, index, bits);
    return state;
  }

  void write(uint32_t state, const Level& level, uint32_t digit, uint32_t target) {
    const uint32_t value = digit + level.offset;
    if (level.digits != Digits::kHex) return widen(state, value, target);
    if (value < 10) return widen(state, '0' + value, target);
    widen(state, 'A' + value - 10, target);
    widen(state, 'a' + value - 10, target);
  }

  // Extends the preceding edge by the byte if it has the same target.
  void widen(uint32_t state, uint32_t byte, uint32_t target) {
    auto& edges = dfa_.states[state].edges;
    for (Dfa::Edge& edge : edges) {
      if (edge.target == target && edge.last + 1 == byte) {
        edge.last = byte;
        return;
      }
    }
    edges.push_back({byte, byte, target});
  }

  Dfa dfa_;
  std::map<Key, uint32_t> tails_;
};

Level lead(int bits, uint32_t offset) {
  return {bits, Digits::kUtf8Lead, offset, {}};
}
Level tail_byte() {
  return {6, Digits::kUtf8Tail, 0x80, {}};
}
Level hex(int bits, uint32_t offset = 0) {
  return {bits, Digits::kHex, offset, {}};
}
Level fixed(std::string_view text) {
  return {0, Digits::kHex, 0, text};
}

std::vector<SymbolRange> between(const SymbolSet& set, uint32_t first, uint32_t last,
                                 uint32_t minus = 0) {
  std::vector<SymbolRange> ranges = set.intersected(SymbolSet{{first, last}}).ranges();
  for (SymbolRange& range : ranges) {
    range.first -= minus;
    range.last -= minus;
  }
  return ranges;
}

void add_utf8(Coder& coder, const SymbolSet& set) {
  coder.add(Coder::kStart, between(set, 0, 0x7F), {lead(7, 0)});
  coder.add(Coder::kStart, between(set, 0x80, 0x7FF), {lead(5, 0xC0), tail_byte()});
  coder.add(Coder::kStart, between(set, 0x800, 0xFFFF), {lead(4, 0xE0), tail_byte(), tail_byte()});
  coder.add(Coder::kStart, between(set, 0x10000, kCodePointMax),
            {lead(3, 0xF0), tail_byte(), tail_byte(), tail_byte()});
}

void add_escapes(Coder& coder, const SymbolSet& set) {
  const uint32_t backslash = coder.new_state();
  coder.add_edge(Coder::kStart, '\\', backslash);
  constexpr std::string_view kShort = "\"\\/\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  for (size_t i = 0; i < kShort.size(); ++i) {
    if (set.contains(static_cast<uint8_t>(kShort[i]))) {
      coder.add_edge(backslash, static_cast<uint8_t>(kLetters[i]), Coder::kEnd);
    }
  }
  const uint32_t code_unit = coder.new_state();
  coder.add_edge(backslash, 'u', code_unit);
  coder.add(code_unit, between(set, 0, 0xFFFF), {hex(4), hex(4), hex(4), hex(4)});
  const uint32_t high = coder.new_state();  // D800 to DBFF, then DC00 to DFFF
  const auto pairs = between(set, 0x10000, kCodePointMax, 0x10000);
  if (pairs.empty()) return;
  coder.add_edge(code_unit, 'D', high);
  coder.add_edge(code_unit, 'd', high);
  coder.add(high, pairs,
            {hex(2, 8), hex(4), hex(4), fixed("\\u"), hex(0, 13), hex(2, 12), hex(4), hex(4)});
}

}  // namespace

Dfa character_code(const SymbolSet& set, CharacterCoding coding) {
  Coder coder;
  if (coding == CharacterCoding::kUtf8) {
    add_utf8(coder, set);
    return coder.take();
  }
  add_utf8(coder, set.without(SymbolSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
  if (set == SymbolSet::scalar_values()) {
    add_escapes(coder, set);
  } else {
    // If only some characters are allowed, ASCII that needs no escape is never escaped, as in all
    // JSON printers, so that constants are predictable.
    add_escapes(coder, set.without(SymbolSet{{' ', '!'}, {'#', '.'}, {'0', '['}, {']', '~'}}));
  }
  return coder.take();
}

}  // namespace lockstep
