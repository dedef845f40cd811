// Conversations with a FakeEngine whose pages outlive it on a disk.
#pragma once

#include <doctest/doctest.h>

#include <span>
#include <vector>

#include "support/fake_pages.h"
#include "support/joined.h"

namespace lockstep {

// The key of the page that ends after `length` tokens.
inline PageKey fake_key(const std::vector<int32_t>& tokens, int length) {
  PageKey key{};
  for (int i = 0; i < length; i += kPagePositions) {
    key = page_key(key, std::span(tokens).subspan(static_cast<size_t>(i), kPagePositions));
  }
  return key;
}

// Five turns, each in a new process: it feeds what is new and less than a page more, and all pages
// are saved, each once. `check` gets the engine, the answer and the request of each turn.
template <class Check>
void check_turns(FakeDisk& disk, const SchedulerLimits& limits, int max_tokens, Check check) {
  std::vector<int32_t> conversation = fake_text(300, 1);
  for (uint64_t turn = 0; turn < 5; ++turn) {
    FakeEngine engine(limits, &disk);
    const GenerateRequest request{.prompt = conversation, .max_tokens = max_tokens};
    const FakeAnswer answer = engine.ask(turn, request);
    const auto size = static_cast<int>(conversation.size());
    const int known = turn == 0 ? 0 : size - 31;
    CHECK(answer.cached_tokens == known / kPagePositions * kPagePositions);
    CHECK(engine.pages.tokens_computed == size - answer.cached_tokens + max_tokens - 1);
    engine.save();
    CHECK(!engine.scheduler.has_unsaved());
    check(engine, answer, request);
    conversation = joined(joined(conversation, answer.tokens), fake_text(30, 40));
  }
  CHECK(disk.saved == static_cast<int>(disk.pages.size()));
}

// Once nothing runs: no page, state or window page is lost.
inline void check_all_is_there(const FakeEngine& engine, const SchedulerLimits& limits) {
  const auto counts = engine.scheduler.page_counts();
  CHECK(counts.free + counts.cached == counts.all);
  CHECK(counts.snapshots + counts.free_states == limits.states);
  CHECK(counts.unused_windows == limits.window_pages);
}

// All of a request's pages, and its states or window pages.
inline void save_all(FakeDisk& disk, const GenerateRequest& request,
                     const SchedulerLimits& limits) {
  FakeEngine engine(limits, &disk);
  engine.ask(1, request);
  engine.save();
  CHECK(!engine.scheduler.has_unsaved());
}

}  // namespace lockstep
