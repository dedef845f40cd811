#include "grammar/text.h"

#include <algorithm>
#include <map>

#include "grammar/code_points.h"

namespace lockstep {
namespace {

// The longest end of `text` that begins one of `markers`.
std::vector<uint32_t> longest_beginning(const std::vector<uint32_t>& text,
                                        const std::vector<std::vector<uint32_t>>& markers) {
  for (size_t skipped = 0; skipped <= text.size(); ++skipped) {
    const std::vector<uint32_t> end(text.begin() + static_cast<std::ptrdiff_t>(skipped),
                                    text.end());
    for (const auto& marker : markers) {
      if (end.size() <= marker.size() && std::equal(end.begin(), end.end(), marker.begin())) {
        return end;
      }
    }
  }
  return {};
}

bool contains_marker(const std::vector<uint32_t>& text,
                     const std::vector<std::vector<uint32_t>>& markers) {
  return std::any_of(markers.begin(), markers.end(), [&](const std::vector<uint32_t>& marker) {
    return text.size() >= marker.size() &&
           std::equal(marker.rbegin(), marker.rend(), text.rbegin());
  });
}

}  // namespace

// Aho and Corasick's automaton: a state is the longest end of what was read that begins a marker.
Result<Dfa> words_without(const std::vector<std::string>& markers) {
  constexpr size_t kMarkerCharactersMax = 1'000;  // all together: building takes their square
  std::vector<std::vector<uint32_t>> words;
  std::vector<SymbolRange> symbols;
  size_t characters = 0;
  for (const std::string& marker : markers) {
    if (marker.empty() || !is_valid_utf8(marker)) {
      return Error{ErrorCode::kInvalidArgument, "a marker must be text that is not empty"};
    }
    words.push_back(code_points(marker));
    characters += words.back().size();
    for (const uint32_t point : words.back()) symbols.push_back({point, point});
  }
  if (characters > kMarkerCharactersMax) {
    return Error{ErrorCode::kExhausted, "the markers of a text have more than the limit of " +
                                            std::to_string(kMarkerCharactersMax) +
                                            " characters together"};
  }
  const SymbolSet of_markers(std::move(symbols));
  const SymbolSet others = SymbolSet::scalar_values().without(of_markers);
  std::map<std::vector<uint32_t>, uint32_t> numbers{{{}, 0}};
  std::vector<std::vector<uint32_t>> pending{{}};
  Dfa dfa;
  for (size_t i = 0; i < pending.size(); ++i) {
    const std::vector<uint32_t> read = pending[i];
    Dfa::State state{true, {}};
    const auto lead_to = [&](SymbolRange range, const std::vector<uint32_t>& end) {
      const auto [entry, is_new] = numbers.try_emplace(end, static_cast<uint32_t>(pending.size()));
      if (is_new) pending.push_back(end);
      state.edges.push_back({range.first, range.last, entry->second});
    };
    for (const SymbolRange range : others.ranges()) lead_to(range, {});
    for (const SymbolRange range : of_markers.ranges()) {
      for (uint32_t symbol = range.first; symbol <= range.last; ++symbol) {
        std::vector<uint32_t> text = read;
        text.push_back(symbol);
        if (!contains_marker(text, words)) {
          lead_to({symbol, symbol}, longest_beginning(text, words));
        }
      }
    }
    std::sort(state.edges.begin(), state.edges.end(),
              [](const Dfa::Edge& a, const Dfa::Edge& b) { return a.first < b.first; });
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

Result<Grammar::Expression> text_without(Grammar& grammar,
                                         const std::vector<std::string>& markers) {
  return grammar.text(TRY(words_without(markers)), CharacterCoding::kUtf8);
}

}  // namespace lockstep
