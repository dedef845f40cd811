#include "tokenizer/models/pair_merger.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <string>

#include "tokenizer/test_tokenizers.h"

using namespace lockstep;

namespace {

// Byte-pair encoding by definition, in n^2: merge the best pair of all until none is left.
Ids merge_slowly(const std::vector<PairMerger::Merge>& merges, Ids ids) {
  while (true) {
    size_t best_rank = merges.size();
    size_t best_position = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left != ids[i] || merges[rank].right != ids[i + 1]) continue;
        best_rank = rank;
        best_position = i;
      }
    }
    if (best_rank == merges.size()) return ids;
    ids[best_position] = merges[best_rank].result;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best_position) + 1);
  }
}

}  // namespace

TEST_CASE("the queue merges as the definition of byte-pair encoding does") {
  std::mt19937 random(4);
  int wrong = 0;
  for (int round = 0; round < 3'000; ++round) {
    std::vector<PairMerger::Merge> merges;
    int32_t symbols = 3;
    for (size_t count = random() % 12; count > 0; --count) {
      const PairMerger::Merge merge = {static_cast<int32_t>(random() % symbols),
                                       static_cast<int32_t>(random() % symbols), symbols};
      const bool is_known = std::any_of(merges.begin(), merges.end(), [&](const auto& other) {
        return other.left == merge.left && other.right == merge.right;
      });
      if (is_known) continue;
      merges.push_back(merge);
      ++symbols;
    }
    std::shuffle(merges.begin(), merges.end(), random);
    Ids ids(random() % 40);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 3);
    Ids merged = ids;
    PairMerger(merges).merge(merged);
    if (merged != merge_slowly(merges, ids)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("nothing, one symbol and no merges stay as they are") {
  Ids none;
  PairMerger({}).merge(none);
  CHECK(none.empty());
  Ids one = {7};
  PairMerger({{7, 7, 8}}).merge(one);
  CHECK(one == Ids{7});
  Ids odd = {7, 7, 7};
  PairMerger({{7, 7, 8}}).merge(odd);
  CHECK(odd == Ids{8, 7});
}

TEST_CASE("a megabyte without a space is encoded in n log n") {
  const auto tokenizer = stories_tokenizer();
  std::mt19937 random(5);
  std::string text(1 << 20, 'a');
  for (char& letter : text) letter = "etaoinshrdlu"[random() % 12];
  const auto begin = std::chrono::steady_clock::now();
  const Ids ids = tokenizer->encode(text, {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  MESSAGE("1 MiB in " << seconds.count() << " s");
  CHECK(tokenizer->decode(ids).value() == text);
  CHECK(seconds.count() < 20);  // an n^2 engine takes hours; the margin is for sanitizers
}
