#!/usr/bin/env python3
"""Writes src/chat/text/character_tables.h: upper and lower case of every character, which ones Python prints
unescaped and which ones are parts of words, from the Unicode version of the Python that runs this. Run it again only to follow a new Unicode."""

import sys
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]

HEAD = """// Upper and lower case of every character, which ones Python prints as they are, and which ones its
// regular expressions take for parts of words. Used by characters.cc.
#pragma once

#include <cstdint>

namespace lockstep {

struct CaseRange {  // every `step`th character from first to last becomes character + difference
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t difference;
};

struct SpecialCase {
  uint32_t code_point;
  const char* text;
};

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

// clang-format off"""


def case_ranges(change):
    """(first, last, step, difference) for characters that become one other, and (character, text) for the rest."""
    ranges, special = [], []
    for c in CODE_POINTS:
        to = change(chr(c))
        if len(to) != 1:
            special.append((c, to))
            continue
        difference = ord(to) - c
        if difference == 0:
            continue
        if ranges and ranges[-1][3] == difference:
            first, last, step, _ = ranges[-1]
            gap = c - last
            if gap <= 2 and (first == last or gap == step):
                ranges[-1] = (first, c, gap, difference)
                continue
        ranges.append((c, c, 1, difference))
    return ranges, special


def ranges_of(belongs):
    ranges = []
    for c in range(0x110000):
        if not belongs(chr(c)):
            continue
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1] = (ranges[-1][0], c)
        else:
            ranges.append((c, c))
    return ranges


def write_table(kind, name, rows):
    print(f"inline constexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        if len(line) + len(row) + 2 > 100:
            print(line)
            line = "   "
        line += f" {row},"
    print(line)
    print("};")


def utf8_literal(text):
    return '"' + "".join(f"\\x{b:02X}" for b in text.encode()) + '"'


def main():
    print(f"// Written by tools/make_character_tables.py from Unicode {unicodedata.unidata_version}.")
    print(HEAD)
    for name, change in (("Upper", str.upper), ("Lower", str.lower)):
        ranges, special = case_ranges(change)
        rows = [f"{{0x{a:X}, 0x{b:X}, {step}, {difference}}}" for a, b, step, difference in ranges]
        write_table("CaseRange", f"k{name}Ranges", rows)
        rows = [f"{{0x{c:X}, {utf8_literal(to)}}}" for c, to in special]
        write_table("SpecialCase", f"kSpecial{name}s", rows)
    kinds = (("kUnprintable", lambda c: not c.isprintable()), ("kWordCharacters", lambda c: c == "_" or c.isalnum()))
    for name, belongs in kinds:
        write_table("CodePointRange", name, [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges_of(belongs)])
    print("// clang-format on")
    print("\n}  // namespace lockstep")


if __name__ == "__main__":
    sys.exit(main())
