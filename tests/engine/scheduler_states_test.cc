// States of recurrent layers on a disk: where a sequence resumes, which states are saved, and that
// neither ever changes a text.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/fake_pages.h"
#include "support/fake_turns.h"
#include "support/joined.h"

using namespace lockstep;

namespace {

SchedulerLimits recurrent_limits(int stages = 1, int context = 1024) {
  SchedulerLimits limits = kFakeLimits;
  limits.stages = stages;
  limits.context = context;
  limits.states = states_needed(limits.sequences_max);
  return limits;
}

FakeAnswer recurrent_alone(const GenerateRequest& request, int context = 1024) {
  return alone(request, recurrent_limits(1, context));
}

}  // namespace

TEST_CASE("states: each turn feeds what is new and a page at most, in a new process each") {
  for (const int stages : {1, 3}) {
    for (const bool lacks_part : {false, true}) {
      CAPTURE(stages);
      CAPTURE(lacks_part);
      FakeDisk disk;
      disk.lacks_part = lacks_part;
      const SchedulerLimits limits = recurrent_limits(stages);
      check_turns(
          disk, limits, 70,
          [&](const FakeEngine& engine, const FakeAnswer& answer, const GenerateRequest& request) {
            CHECK(answer.tokens == recurrent_alone(request).tokens);
            check_all_is_there(engine, limits);
          });
      CHECK(disk.saved_states == static_cast<int>(disk.states.size()));
      CHECK(disk.loaded_states == 4);
    }
  }
}

TEST_CASE("states: those of a prompt and of an answer are saved, not those between") {
  const SchedulerLimits limits = recurrent_limits(1, 8192);
  FakeDisk disk;
  const GenerateRequest request{.prompt = fake_text(5000, 1), .max_tokens = 300};
  FakeEngine engine(limits, &disk);
  const FakeAnswer answer = engine.ask(1, request);
  CHECK(engine.scheduler.page_counts().snapshots >= 5);
  engine.save();
  const auto all = joined(request.prompt, answer.tokens);
  CHECK(disk.states.size() == 2);
  CHECK(disk.states.contains(fake_key(all, 4992)));
  CHECK(disk.states.contains(fake_key(all, 5248)));
  CHECK(engine.save() == 0);
  // One that another request has continued is saved too.
  const auto other = joined(fake_text(3500, 1), fake_text(100, 60));
  CHECK(engine.ask(2, {.prompt = other, .max_tokens = 1}).cached_tokens == 3072);
  engine.save();
  CHECK(disk.states.size() == 4);
  CHECK(disk.states.contains(fake_key(all, 3072)));
  const auto third = joined(fake_text(3500, 1), fake_text(100, 90));
  const GenerateRequest later{.prompt = third, .max_tokens = 3};
  FakeEngine second(limits, &disk);
  CHECK(second.ask(1, later).cached_tokens == 3072);
  CHECK(second.answer(1).tokens == recurrent_alone(later, 8192).tokens);
}

TEST_CASE("states: pages of no use are not loaded, and a lost state costs its page at most") {
  const SchedulerLimits limits = recurrent_limits();
  FakeDisk disk;
  const GenerateRequest first{.prompt = fake_text(300, 1), .max_tokens = 1};
  const GenerateRequest longer{.prompt = fake_text(700, 1), .max_tokens = 3};
  save_all(disk, first, limits);
  save_all(disk, longer, limits);
  CHECK(disk.states.size() == 2);
  for (const bool is_broken : {false, true}) {
    const PageKey last = fake_key(longer.prompt, 640);
    const uint64_t number = disk.states[last];
    is_broken ? disk.broken_states.insert(last).second : disk.states.erase(last) > 0;
    disk.loaded = 0;
    FakeEngine engine(limits, &disk);
    const FakeAnswer answer = engine.ask(1, longer);
    CHECK(answer.tokens == recurrent_alone(longer).tokens);
    CHECK(answer.cached_tokens == 256);
    CHECK(disk.loaded == (is_broken ? 10 : 4));
    CHECK(disk.forgotten_states.contains(last) == is_broken);
    CHECK(!disk.states.contains(last));
    disk.broken_states.clear();
    engine.save();
    CHECK(disk.states[last] == number);  // computed again
    check_all_is_there(engine, limits);
  }
  disk.states.clear();
  disk.loaded = 0;
  FakeEngine engine(limits, &disk);
  CHECK(engine.ask(1, longer).cached_tokens == 0);
  CHECK(disk.loaded == 0);
}

TEST_CASE("states: a page that cannot be loaded makes the sequence resume before it") {
  for (const int stages : {1, 3}) {
    for (const bool lacks_part : {false, true}) {
      for (const int bad : {64, 256, 320, 640}) {
        CAPTURE(stages);
        CAPTURE(lacks_part);
        CAPTURE(bad);
        const SchedulerLimits limits = recurrent_limits(stages);
        FakeDisk disk;
        const GenerateRequest longer{.prompt = fake_text(700, 1), .max_tokens = 3};
        save_all(disk, {.prompt = fake_text(300, 1), .max_tokens = 1}, limits);
        save_all(disk, longer, limits);
        disk.lacks_part = lacks_part;
        disk.bytes_of_page = kLoadBytesMax / 3;  // several steps
        disk.broken.insert(fake_key(longer.prompt, bad));
        FakeEngine engine(limits, &disk);
        engine.submit(1, longer);
        engine.submit(2, longer);
        engine.run();
        for (const uint64_t id : {1u, 2u}) {
          CHECK(engine.answer(id).tokens == recurrent_alone(longer).tokens);
        }
        CHECK(engine.answer(1).cached_tokens == (bad <= 256 ? 0 : 256));
        CHECK(engine.answer(2).cached_tokens >= engine.answer(1).cached_tokens);
        check_all_is_there(engine, limits);
      }
    }
  }
}

TEST_CASE("states: copies of a prompt load its pages and its state once, in several steps") {
  for (const bool is_beside : {false, true}) {
    const SchedulerLimits limits = recurrent_limits();
    FakeDisk disk;
    const std::vector<int32_t> beginning = fake_text(700, 3);
    save_all(disk, {.prompt = beginning, .max_tokens = 1}, limits);
    disk.bytes_of_page = kLoadBytesMax / 4;
    FakeEngine engine(limits, &disk);
    if (is_beside) {
      engine.submit(9, {.prompt = {5}, .max_tokens = 100});
      REQUIRE(engine.plan());
      engine.complete();
    }
    std::vector<GenerateRequest> requests;
    for (int i = 0; i < 3; ++i) {
      requests.push_back({.prompt = joined(beginning, fake_text(20, 50 * i)), .max_tokens = 5});
      engine.submit(static_cast<uint64_t>(i), requests.back());
    }
    engine.run();
    for (size_t i = 0; i < requests.size(); ++i) {
      CHECK(engine.answer(i).tokens == recurrent_alone(requests[i]).tokens);
      CHECK(engine.answer(i).cached_tokens == 640);
    }
    CHECK(disk.loaded == 10);
    CHECK(disk.loaded_states == 1);
    check_all_is_there(engine, limits);
  }
}

TEST_CASE("states: different texts that resume together each get their own state") {
  for (const int stages : {1, 2}) {
    const SchedulerLimits limits = recurrent_limits(stages);
    FakeDisk disk;
    std::vector<GenerateRequest> requests;
    for (int i = 0; i < 4; ++i) {
      requests.push_back({.prompt = fake_text(200 + 50 * i, 100 * i), .max_tokens = 20});
      save_all(disk, requests.back(), limits);
    }
    FakeEngine engine(limits, &disk);
    for (size_t i = 0; i < requests.size(); ++i) engine.submit(i, requests[i]);
    engine.run();
    for (size_t i = 0; i < requests.size(); ++i) {
      CHECK(engine.answer(i).tokens == recurrent_alone(requests[i]).tokens);
      const int size = static_cast<int>(requests[i].prompt.size());
      CHECK(engine.answer(i).cached_tokens == (size - 1) / kPagePositions * kPagePositions);
    }
    CHECK(disk.loaded_states == 4);
    check_all_is_there(engine, limits);
  }
}

TEST_CASE("states: one that is evicted from memory is saved by that step and loaded again") {
  SchedulerLimits limits = recurrent_limits();
  limits.sequences_max = 2;
  limits.states = states_needed(2);
  limits.context = 4096;
  FakeDisk disk;
  FakeEngine engine(limits, &disk);
  const auto request_of = [](int i) {
    return GenerateRequest{.prompt = fake_text(100, 40 * i), .max_tokens = 1};
  };
  for (int i = 0; i < 20; ++i) engine.ask(static_cast<uint64_t>(i), request_of(i));
  CHECK(engine.scheduler.page_counts().cached == 20);  // pages stay in memory
  CHECK(disk.saved == 0);
  CHECK(disk.saved_states >= 8);
  const GenerateRequest again{.prompt = joined(fake_text(100, 0), fake_text(50, 7)),
                              .max_tokens = 30};
  const FakeAnswer answer = engine.ask(100, again);
  CHECK(answer.tokens == recurrent_alone(again).tokens);
  CHECK(answer.cached_tokens == 64);
  CHECK(disk.loaded == 0);
  CHECK(disk.loaded_states == 1);
  check_all_is_there(engine, limits);
}

TEST_CASE("states: one for which another rank has no room is saved again later") {
  FakeDisk disk;
  const SchedulerLimits limits = recurrent_limits();
  FakeEngine engine(limits, &disk);
  const std::vector<int32_t> prompt = fake_text(100, 3);
  engine.ask(1, {.prompt = prompt, .max_tokens = 1});
  REQUIRE(engine.plan_save());  // its page
  engine.complete();
  disk.is_full_elsewhere = true;
  REQUIRE(engine.plan_save());
  REQUIRE(engine.step.pages.state_saves.size() == 1);
  CHECK(engine.step.pages.state_saves[0].key == fake_key(prompt, 64));
  engine.complete();
  CHECK(engine.scheduler.take_save_failed());
  CHECK(engine.scheduler.has_unsaved());
  disk.is_full_elsewhere = false;
  CHECK(engine.save() == 1);
  CHECK(!engine.scheduler.has_unsaved());
}

TEST_CASE("states: if a rank has no store all sequences that load compute instead") {
  for (const int stages : {1, 3}) {
    const SchedulerLimits limits = recurrent_limits(stages);
    FakeDisk disk;
    std::vector<GenerateRequest> requests;
    for (int i = 0; i < 4; ++i) {
      requests.push_back({.prompt = fake_text(600, 100 * i), .max_tokens = 3});
      save_all(disk, requests.back(), limits);
    }
    disk.bytes_of_page = kLoadBytesMax / 4;
    disk.lacks_elsewhere = true;
    FakeEngine engine(limits, &disk);
    for (size_t i = 0; i < requests.size(); ++i) engine.submit(i, requests[i]);
    engine.run();
    for (size_t i = 0; i < requests.size(); ++i) {
      CHECK(engine.answer(i).tokens == recurrent_alone(requests[i]).tokens);
      CHECK(engine.answer(i).cached_tokens == 0);
    }
    CHECK(!engine.scheduler.has_unsaved());
    check_all_is_there(engine, limits);
  }
}

TEST_CASE("states: a sequence that is cancelled between its loads leaves its pages to others") {
  for (const int steps : {1, 2, 3}) {
    const SchedulerLimits limits = recurrent_limits();
    FakeDisk disk;
    const GenerateRequest request{.prompt = fake_text(700, 3), .max_tokens = 3};
    save_all(disk, request, limits);
    disk.bytes_of_page = kLoadBytesMax / 4;
    for (const bool is_in_flight : {false, true}) {
      disk.loaded = disk.loaded_states = 0;
      FakeEngine engine(limits, &disk);
      engine.submit(1, request);
      for (int i = 0; i < steps; ++i) {
        REQUIRE(engine.plan());
        if (i + 1 < steps || !is_in_flight) engine.complete();
      }
      CHECK(engine.scheduler.cancel(1));
      if (is_in_flight) engine.complete();
      CHECK(!engine.plan());
      check_all_is_there(engine, limits);
      CHECK(engine.ask(2, request).cached_tokens == 640);
      CHECK(disk.loaded == 10);
      CHECK(disk.loaded_states == 1);
    }
  }
}

TEST_CASE("states: pages before NaN logits and their states are removed from the disk") {
  FakeDisk disk;
  std::vector<int32_t> prompt = fake_text(320, 3);
  const SchedulerLimits limits = recurrent_limits();
  FakeEngine engine(limits, &disk);
  engine.ask(1, {.prompt = prompt, .max_tokens = 1});
  engine.save();
  CHECK(disk.states.size() == 2);  // at 256, and at the end of the prompt
  prompt.push_back(kPoison);
  CHECK(engine.ask(2, {.prompt = prompt, .max_tokens = 4}).end.find("not numbers") !=
        std::string::npos);
  CHECK(disk.pages.empty());
  CHECK(disk.states.empty());
  CHECK(engine.save() == 0);
  check_all_is_there(engine, limits);
}

namespace {

void mix_requests(int stages, bool lacks_part) {
  std::mt19937 random(static_cast<unsigned>(stages));
  SchedulerLimits limits = recurrent_limits(stages, 400);
  limits.sequences_max = 3;
  limits.states = states_needed(3);
  const MixedRequests requests = mixed_requests(12, 300, 40, limits, random);
  FakeDisk disk;
  disk.lacks_part = lacks_part;
  for (int process = 0; process < 24; ++process) {
    FakeEngine engine(limits, &disk);
    disk.room = static_cast<int>(random() % 120);
    disk.bytes_of_page = random() % 2 == 0 ? 1 : kLoadBytesMax / 2;
    check_mix(engine, limits, disk, requests, random);
  }
  CHECK(disk.loaded > 20);
  CHECK(disk.loaded_states > 8);
  CHECK(disk.saved_states > 20);
}

}  // namespace

TEST_CASE("states: any mix of requests, restarts, failures and cancellations changes no text") {
  for (const int stages : {1, 2, 4}) {
    for (const bool lacks_part : {false, true}) mix_requests(stages, lacks_part);
  }
}
