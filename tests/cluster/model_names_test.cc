#include "cluster/state/model_names.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace lockstep;

namespace {

DesiredState models() {
  DesiredState state;
  int64_t time_ms = 1;
  const auto add = [&](std::string name, std::vector<std::string> aliases, bool wanted = true) {
    DesiredEntry entry;
    entry.name = std::move(name);
    entry.stamp.time_ms = time_ms++;
    entry.wanted = wanted;
    entry.promises.aliases = std::move(aliases);
    state.merge(entry);
  };
  add("qwen3-8b", {"gpt-4", "small"});
  add("qwen3-14b", {"small"});
  add("llama-70b", {"qwen3-8b"});
  add("gone", {"gpt-5"}, false);
  return state;
}

}  // namespace

TEST_CASE("a name wins over an alias, and the later of two equal aliases wins") {
  const auto state = models();
  CHECK(find_model(state, "qwen3-8b").entry->name == "qwen3-8b");
  CHECK(find_model(state, "gpt-4").entry->name == "qwen3-8b");
  CHECK(find_model(state, "small").entry->name == "qwen3-14b");
}

TEST_CASE("an unknown name gets the nearest ones as suggestions, never unloaded ones") {
  const auto state = models();
  const auto found = find_model(state, "Qwen3-8");
  CHECK(found.entry == nullptr);
  REQUIRE(!found.suggestions.empty());
  CHECK(found.suggestions[0] == "qwen3-8b");
  CHECK(no_such_model("Qwen3-8", found).find("did you mean qwen3-8b") != std::string::npos);
  CHECK(find_model(state, "70b").suggestions == std::vector<std::string>{"llama-70b"});
  CHECK(find_model(state, "gone").entry == nullptr);
  CHECK(find_model(state, "gpt-5").suggestions == std::vector<std::string>{"gpt-4"});
  CHECK(find_model(state, "zzzzzzzz").suggestions.empty());
  CHECK(no_such_model("x", {}) == "there is no model 'x'");
  CHECK(find_model({}, "a").suggestions.empty());
}

TEST_CASE("the distance counts insertions, removals, replacements and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("qewn", "qwen") == 1);
  CHECK(edit_distance("QWEN", "qwen") == 0);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance(std::string(5000, 'a'), std::string(5000, 'b')) == 256);
}
