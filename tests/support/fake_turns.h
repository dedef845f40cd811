// Conversations with a FakeEngine whose pages outlive it on a disk.
#pragma once

#include <doctest/doctest.h>

#include <iterator>
#include <map>
#include <random>
#include <set>
#include <span>
#include <utility>
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

// Requests of which some have the same beginning, and their texts.
struct MixedRequests {
  std::vector<GenerateRequest> known;
  std::vector<std::vector<int32_t>> expected;
};

// With guesses, and half of them with texts that repeat themselves.
inline MixedRequests mixed_requests(int count, int beginning_max, int answer_max,
                                    const SchedulerLimits& limits, std::mt19937& random) {
  const auto below = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  MixedRequests mixed;
  for (int i = 0; i < count; ++i) {
    const auto beginning = fake_text(below(beginning_max), 100 * (i % 3));
    GenerateRequest request;
    request.prompt = joined(beginning, fake_text(1 + below(60), i));
    request.max_tokens = 1 + below(answer_max);
    request.sampling.seed = i % 2 == 0 ? kRepeatingSeed : 0;
    request.draft_tokens = i % 4;
    mixed.expected.push_back(alone(request, limits).tokens);
    mixed.known.push_back(std::move(request));
  }
  return mixed;
}

// Submits, cancels, plans, saves and completes at random, while parts of the disk break, and checks
// the texts of all that were not cancelled. The broken parts are gone afterwards.
inline void check_mix(FakeEngine& engine, const SchedulerLimits& limits, FakeDisk& disk,
                      const MixedRequests& requests, std::mt19937& random) {
  const auto break_some = [&](const auto& all, std::set<PageKey>& broken) {
    if (all.empty() || random() % 30 != 0) return;
    broken.insert(std::next(all.begin(), static_cast<long>(random() % all.size()))->first);
  };
  std::map<uint64_t, size_t> asked;
  uint64_t next = 0;
  for (int round = 0; round < 300; ++round) {
    if (round < 250 && random() % 4 == 0) {
      asked[next] = random() % requests.known.size();
      engine.submit(next, requests.known[asked[next]]);
      ++next;
    }
    if (next > 0 && random() % 20 == 0) {
      const uint64_t id = random() % next;
      if (engine.scheduler.cancel(id)) asked.erase(id);
    }
    break_some(disk.pages, disk.broken);
    break_some(disk.states, disk.broken_states);
    break_some(disk.windows, disk.broken_states);
    if (random() % 3 != 0) engine.plan();
    if (engine.scheduler.steps_in_flight() == 0 && random() % 2 == 0) engine.plan_save();
    if (engine.scheduler.steps_in_flight() > 0 && random() % 3 != 0) engine.complete();
  }
  engine.run();
  for (const auto& [id, index] : asked) {
    CHECK(engine.answer(id).tokens == requests.expected[index]);
    CHECK(engine.answer(id).end == "length");
  }
  check_all_is_there(engine, limits);
  for (const PageKey& key : disk.broken) disk.pages.erase(key);
  for (const PageKey& key : disk.broken_states) disk.states.erase(key), disk.windows.erase(key);
  disk.broken.clear();
  disk.broken_states.clear();
}

}  // namespace lockstep
