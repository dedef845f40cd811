#include <doctest/doctest.h>

#include <set>

#include "kernels/kernels.h"
#include "model/forward/batch.h"
#include "model/load/sequence_state.h"

using namespace lockstep;

TEST_CASE("sequences get their own pages and return them") {
  StatePool pool(5);
  SequenceState a, b;
  REQUIRE(pool.grow(a, 1).ok());
  REQUIRE(pool.grow(b, kPagePositions + 1).ok());
  REQUIRE(pool.grow(a, kPagePositions).ok());
  CHECK(a.pages().size() == 1);
  CHECK(b.pages().size() == 2);
  std::set<int32_t> pages(a.pages().begin(), a.pages().end());
  pages.insert(b.pages().begin(), b.pages().end());
  CHECK(pages.size() == 3);
  pool.truncate(b, 1);
  CHECK(b.pages().size() == 1);
  pool.truncate(a, 0);
  pool.truncate(b, 0);
  CHECK(pool.free_pages() == 5);
}

TEST_CASE("a pool without enough pages says so and changes nothing") {
  StatePool pool(2);
  SequenceState state;
  REQUIRE(pool.grow(state, kPagePositions).ok());
  const Status refused = pool.grow(state, 3 * kPagePositions);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  CHECK(state.pages().size() == 1);
  CHECK(pool.free_pages() == 1);
}

TEST_CASE("a batch with indices outside the model is corrupt") {
  const BatchLimits limits{
      .tokens_max = 4, .page_list_entries_max = 3, .pages = 8, .vocab_size = 10};
  const Batch sound{.tokens = {1, 9},
                    .positions = {63, 64},
                    .list_offsets = {0, 0},
                    .page_lists = {7, 0},
                    .outputs = {1}};
  REQUIRE(check_batch(sound, limits).ok());
  const auto broken = [&](auto change) {
    Batch batch = sound;
    change(batch);
    const Status status = check_batch(batch, limits);
    return !status.ok() && status.error().code == ErrorCode::kCorrupt;
  };
  CHECK(broken([](Batch& b) { b.tokens[0] = 10; }));
  CHECK(broken([](Batch& b) { b.tokens[0] = -1; }));
  CHECK(broken([](Batch& b) { b.positions[1] = 128; }));
  CHECK(broken([](Batch& b) { b.positions[1] = -1; }));
  CHECK(broken([](Batch& b) { b.list_offsets[1] = 1; }));
  CHECK(broken([](Batch& b) { b.list_offsets[1] = -1; }));
  CHECK(broken([](Batch& b) { b.page_lists[0] = 8; }));
  CHECK(broken([](Batch& b) { b.outputs[0] = 2; }));
  CHECK(broken([](Batch& b) { b.positions.pop_back(); }));
  CHECK(broken([](Batch& b) { b.page_lists.resize(4); }));
  CHECK(broken([](Batch& b) {
    b.tokens.resize(5);
    b.positions.resize(5);
    b.list_offsets.resize(5);
  }));
}
