#include "engine/pages/prefix_tree.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "kernels/kernels.h"

using namespace lockstep;

namespace {

constexpr int32_t kNone = PrefixTree::kNone;

std::vector<int32_t> tokens_of(int32_t first) {
  std::vector<int32_t> tokens(kPagePositions);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = first + static_cast<int32_t>(i);
  return tokens;
}

}  // namespace

TEST_CASE("a page is found by the page before it and its own tokens") {
  PrefixTree tree(4);
  const auto a = tokens_of(0), b = tokens_of(100);
  tree.insert({.tokens = a, .hash = 1}, 2);
  tree.insert({.parent = 2, .tokens = b, .hash = 2}, 0);
  CHECK(tree.find({.tokens = a, .hash = 1}) == 2);
  CHECK(tree.find({.parent = 2, .tokens = b, .hash = 2}) == 0);
  CHECK(tree.find({.tokens = b, .hash = 2}) == kNone);
  CHECK(tree.find({.parent = 0, .tokens = b, .hash = 2}) == kNone);
  CHECK(tree.find({.parent = 2, .tokens = a, .hash = 2}) == kNone);
  CHECK(tree.size() == 2);
}

TEST_CASE("equal hashes of other tokens or another beginning find nothing") {
  PrefixTree tree(8);
  const auto a = tokens_of(0);
  auto last_differs = a;
  last_differs.back() = -1;
  tree.insert({.tokens = a, .hash = 7}, 0);
  CHECK(tree.find({.tokens = last_differs, .hash = 7}) == kNone);
  tree.insert({.tokens = last_differs, .hash = 7}, 1);
  tree.insert({.parent = 0, .tokens = a, .hash = 7}, 2);
  tree.insert({.parent = 1, .tokens = a, .hash = 7}, 3);
  CHECK(tree.find({.tokens = a, .hash = 7}) == 0);
  CHECK(tree.find({.tokens = last_differs, .hash = 7}) == 1);
  CHECK(tree.find({.parent = 0, .tokens = a, .hash = 7}) == 2);
  CHECK(tree.find({.parent = 1, .tokens = a, .hash = 7}) == 3);
  CHECK(tree.find({.parent = 2, .tokens = a, .hash = 7}) == kNone);
}

TEST_CASE("the hash of a page depends on every token and on all before it") {
  const auto a = tokens_of(0);
  const uint64_t hash = chain_hash(0, a);
  CHECK(chain_hash(0, a) == hash);
  CHECK(chain_hash(1, a) != hash);
  for (size_t i = 0; i < a.size(); ++i) {
    auto other = a;
    other[i] += 1;
    CHECK(chain_hash(0, other) != hash);
  }
}

TEST_CASE("idle pages are evicted from the leaves, least recently used first") {
  PrefixTree tree(6);
  const auto a = tokens_of(0), b = tokens_of(100), c = tokens_of(200);
  tree.insert({.tokens = a, .hash = 1}, 0);               // 0 - 1
  tree.insert({.parent = 0, .tokens = b, .hash = 2}, 1);  //   - 2
  tree.insert({.parent = 0, .tokens = c, .hash = 3}, 2);
  tree.insert({.tokens = c, .hash = 4}, 3);  // 3
  CHECK(tree.take_oldest() == kNone);        // all are in use
  tree.set_idle(2);
  tree.set_idle(3);
  tree.set_idle(1);
  tree.set_idle(0);
  tree.set_used(3);  // and idle again: now the most recently used
  tree.set_idle(3);
  CHECK(tree.take_oldest() == 2);
  CHECK(!tree.contains(2));
  CHECK(tree.find({.parent = 0, .tokens = c, .hash = 3}) == kNone);
  CHECK(tree.take_oldest() == 1);
  CHECK(tree.take_oldest() == 0);  // a leaf since its last child was evicted; used before 3
  CHECK(tree.take_oldest() == 3);
  CHECK(tree.take_oldest() == kNone);
  CHECK(tree.size() == 0);
}

TEST_CASE("a page in use protects those before it") {
  PrefixTree tree(4);
  const auto a = tokens_of(0), b = tokens_of(100);
  tree.insert({.tokens = a, .hash = 1}, 0);
  tree.insert({.parent = 0, .tokens = b, .hash = 2}, 1);
  tree.set_idle(1);
  CHECK(tree.take_oldest() == 1);
  CHECK(tree.take_oldest() == kNone);
  CHECK(tree.contains(0));
}

TEST_CASE("a page is removed with every page after it, in use or not") {
  PrefixTree tree(6);
  const auto a = tokens_of(0), b = tokens_of(100), c = tokens_of(200);
  tree.insert({.tokens = a, .hash = 1}, 0);
  tree.insert({.parent = 0, .tokens = b, .hash = 2}, 1);
  tree.insert({.parent = 1, .tokens = c, .hash = 3}, 2);
  tree.insert({.parent = 0, .tokens = c, .hash = 4}, 3);
  tree.insert({.tokens = c, .hash = 5}, 4);
  tree.set_idle(2);
  auto taken = tree.take_subtree(1);
  std::sort(taken.begin(), taken.end());
  CHECK(taken == std::vector<int32_t>{1, 2});
  CHECK(tree.size() == 3);
  tree.set_idle(3);
  tree.set_idle(0);
  CHECK(tree.take_oldest() == 3);
  CHECK(tree.take_oldest() == 0);
  CHECK(tree.take_oldest() == kNone);
  tree.insert({.tokens = a, .hash = 1}, 1);  // the number can be used again
  CHECK(tree.find({.tokens = a, .hash = 1}) == 1);
}

// Compared with a model that keeps whole paths and scans all of them.
TEST_CASE("many random uses: the tree has every inserted page, and evicts the oldest leaf") {
  struct Known {
    int32_t parent;
    std::vector<int32_t> tokens;
    int children = 0;
    bool is_idle = false;
    uint64_t last_use = 0;
  };
  constexpr int kPages = 40;
  std::mt19937 random(5);
  PrefixTree tree(kPages);
  std::map<int32_t, Known> known;
  uint64_t time = 0;
  const auto hash_of = [](int32_t value) { return static_cast<uint64_t>(value % 3); };
  for (int round = 0; round < 20'000; ++round) {
    const auto page = static_cast<int32_t>(random() % kPages);
    const auto found = known.find(page);
    if (found == known.end()) {  // insert it after one that is in use, or first
      int32_t parent = static_cast<int32_t>(random() % (kPages + 4));
      if (!known.contains(parent) || known.at(parent).is_idle) parent = kNone;
      const auto value = static_cast<int32_t>(random() % 1000);
      const auto tokens = tokens_of(value);
      const PrefixTree::Key key{.parent = parent, .tokens = tokens, .hash = hash_of(value)};
      const auto same = std::find_if(known.begin(), known.end(), [&](const auto& each) {
        return each.second.parent == parent && each.second.tokens == tokens;
      });
      CHECK(tree.find(key) == (same == known.end() ? kNone : same->first));
      if (same != known.end()) continue;
      tree.insert(key, page);
      known[page] = {parent, tokens, 0, false, ++time};
      if (parent != kNone) ++known.at(parent).children;
    } else if (random() % 4 == 0) {
      int32_t oldest = kNone;
      for (const auto& [number, each] : known) {
        if (!each.is_idle || each.children > 0) continue;
        if (oldest == kNone || each.last_use < known.at(oldest).last_use) oldest = number;
      }
      REQUIRE(tree.take_oldest() == oldest);
      if (oldest == kNone) continue;
      const int32_t parent = known.at(oldest).parent;
      known.erase(oldest);
      if (parent != kNone) --known.at(parent).children;
    } else if (found->second.is_idle) {  // use it and all before it
      for (int32_t each = page; each != kNone; each = known.at(each).parent) {
        tree.set_used(each);
        known.at(each).is_idle = false;
        known.at(each).last_use = ++time;
      }
    } else {  // idle, unless one after it is in use
      const bool is_free = std::none_of(known.begin(), known.end(), [&](const auto& each) {
        return each.second.parent == page && !each.second.is_idle;
      });
      if (!is_free) continue;
      tree.set_idle(page);
      found->second.is_idle = true;
      found->second.last_use = ++time;
    }
    REQUIRE(tree.size() == static_cast<int>(known.size()));
  }
}
