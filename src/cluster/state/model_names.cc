#include "cluster/state/model_names.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/letters.h"

namespace lockstep {
namespace {

std::string lower_name(std::string_view text) {
  return lower_text(text.substr(0, kModelNameBytesMax));
}

// A third of the characters may differ; parts of long names match too ("8b" of "qwen3-8b").
bool is_near(std::string_view asked, std::string_view known, size_t distance) {
  const size_t allowed = std::max<size_t>(1, std::max(asked.size(), known.size()) / 3);
  return distance <= allowed ||
         (asked.size() >= 3 && lower_name(known).find(lower_name(asked)) != std::string::npos);
}

}  // namespace

ModelName find_model(const DesiredState& desired, std::string_view name) {
  ModelName found;
  const DesiredEntry* exact = desired.find(name);
  if (exact != nullptr && exact->wanted) {
    found.entry = exact;
    return found;
  }
  std::vector<std::string> known_names;
  for (const auto& [known, entry] : desired.entries()) {
    if (!entry.wanted) continue;
    for (const std::string& alias : entry.promises.aliases) {
      const bool is_later = found.entry == nullptr || entry.stamp > found.entry->stamp;
      if (alias == name && is_later) found.entry = &entry;
      known_names.push_back(alias);
    }
    known_names.push_back(known);
  }
  if (found.entry == nullptr) found.suggestions = names_like(name, known_names);
  return found;
}

std::vector<std::string> names_like(std::string_view asked, const std::vector<std::string>& known) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(asked, candidate);
    if (is_near(asked, candidate, distance)) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(near.size(), kSuggestionsMax); ++i) {
    names.push_back(near[i].second);
  }
  return names;
}

std::string no_such_model(std::string_view name, const ModelName& found) {
  if (found.suggestions.empty()) return fmt::format("there is no model '{}'", name);
  return fmt::format("there is no model '{}'; did you mean {}?", name,
                     fmt::join(found.suggestions, " or "));
}

size_t edit_distance(std::string_view a, std::string_view b) {
  const std::string from = lower_name(a);
  const std::string to = lower_name(b);
  std::vector<size_t> before(to.size() + 1), above(to.size() + 1), row(to.size() + 1);
  for (size_t k = 0; k <= to.size(); ++k) row[k] = k;
  for (size_t i = 1; i <= from.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (size_t k = 1; k <= to.size(); ++k) {
      const size_t replaced = above[k - 1] + (from[i - 1] == to[k - 1] ? 0 : 1);
      row[k] = std::min({above[k] + 1, row[k - 1] + 1, replaced});
      const bool is_swap = i > 1 && k > 1 && from[i - 1] == to[k - 2] && from[i - 2] == to[k - 1];
      if (is_swap) row[k] = std::min(row[k], before[k - 2] + 1);
    }
  }
  return row[to.size()];
}

}  // namespace lockstep
