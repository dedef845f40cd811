// Window pages: a sequence finds those within its reach whatever else runs, beginnings are taken
// over where theirs are still there, and what is saved and loaded of them never changes a text.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/fake_pages.h"
#include "support/fake_turns.h"
#include "support/joined.h"

using namespace lockstep;

namespace {

SchedulerLimits windowed_limits(int reach, int stages = 1, int context = 4096) {
  SchedulerLimits limits = kFakeLimits;
  limits.stages = stages;
  limits.context = context;
  limits.reach = reach;
  limits.window_pages = window_pages_needed({.reach = reach,
                                             .sequences = limits.sequences_max,
                                             .tokens_max = limits.tokens_max,
                                             .pages = pages_needed(limits)});
  return limits;
}

}  // namespace

TEST_CASE("windows: there are as many as running sequences may need, and no more than pages") {
  CHECK(window_pages_needed({.reach = 0, .sequences = 4, .tokens_max = 512, .pages = 64}) == 0);
  CHECK(window_span(1) == 2);
  CHECK(window_span(64) == 2);
  CHECK(window_span(65) == 3);
  CHECK(first_window_page(63, 64) == 0);
  CHECK(first_window_page(126, 64) == 0);  // reaches back to 63
  CHECK(first_window_page(127, 64) == 1);
  // Four times two spans and two more, the tokens' pages, eight spare spans.
  const WindowNeed need{.reach = 128, .sequences = 4, .tokens_max = 512, .pages = 10'000};
  CHECK(window_pages_needed(need) == 4 * (2 * 3 + 2) + 8 + 8 * 3);
  CHECK(window_pages_needed({.reach = 128, .sequences = 4, .tokens_max = 512, .pages = 40}) == 40);
}

TEST_CASE("windows: a long text takes those that it has passed, and its beginning is lost") {
  for (const int stages : {1, 3}) {
    for (const int reach : {2, 16, 64, 100, 300}) {
      CAPTURE(stages);
      CAPTURE(reach);
      const SchedulerLimits limits = windowed_limits(reach, stages, 16'384);
      REQUIRE(limits.window_pages < 120);
      const GenerateRequest request{.prompt = fake_text(16'000, 1), .max_tokens = 200};
      FakeEngine engine(limits);
      // With all window pages nothing is ever given to another page.
      SchedulerLimits all = limits;
      all.window_pages = pages_needed(all);
      CHECK(engine.ask(1, request).tokens == alone(request, all).tokens);
      check_all_is_there(engine, limits);
      // The next turn continues after the answer, another text with a part of the beginning cannot.
      const auto turn = joined(joined(request.prompt, engine.answer(1).tokens), fake_text(9, 70));
      const GenerateRequest next{.prompt = turn, .max_tokens = 5};
      CHECK(engine.ask(2, next).cached_tokens == 16'192);
      const GenerateRequest part{.prompt = joined(fake_text(640, 1), fake_text(100, 9)),
                                 .max_tokens = 5};
      CHECK(engine.ask(3, part).cached_tokens == 0);
      CHECK(engine.answer(3).tokens == alone(part, all).tokens);
      // Its pages are in the tree now with window pages.
      CHECK(engine.ask(4, part).cached_tokens == 704);
      CHECK(engine.answer(4).tokens == engine.answer(3).tokens);
      check_all_is_there(engine, limits);
    }
  }
}

TEST_CASE("windows: prompts and answers keep theirs while a long text runs") {
  const SchedulerLimits limits = windowed_limits(128, 1, 16'384);
  FakeEngine engine(limits);
  std::vector<GenerateRequest> chats;
  for (int i = 0; i < 4; ++i) {
    chats.push_back({.prompt = fake_text(300 + i, 100 * i), .max_tokens = 200});
    engine.ask(static_cast<uint64_t>(i), chats.back());
  }
  engine.ask(10, {.prompt = fake_text(16'000, 50), .max_tokens = 20});
  for (size_t i = 0; i < chats.size(); ++i) {
    GenerateRequest next = chats[i];
    next.prompt = joined(joined(next.prompt, engine.answer(i).tokens), fake_text(20, 5));
    CHECK(engine.ask(20 + i, next).cached_tokens == 448);
    CHECK(engine.answer(20 + i).tokens == alone(next, limits).tokens);
    CHECK(engine.ask(30 + i, chats[i]).cached_tokens == 256);  // regenerate
    CHECK(engine.answer(30 + i).tokens == engine.answer(i).tokens);
  }
  check_all_is_there(engine, limits);
}

TEST_CASE(
    "windows: a long text can be continued at every 1,024th position, as far as there is room") {
  const SchedulerLimits limits = windowed_limits(128, 1, 16'384);
  FakeEngine engine(limits);
  const std::vector<int32_t> text = fake_text(12'000, 1);
  engine.ask(1, {.prompt = text, .max_tokens = 200});
  for (const int common : {7'500, 4'200}) {
    const std::vector<int32_t> beginning(text.begin(), text.begin() + common);
    const GenerateRequest request{.prompt = joined(beginning, fake_text(100, 9)), .max_tokens = 5};
    const uint64_t id = static_cast<uint64_t>(common);
    CHECK(engine.ask(id, request).cached_tokens == common / 1024 * 1024);
    CHECK(engine.answer(id).tokens == alone(request, limits).tokens);
  }
  check_all_is_there(engine, limits);
}

TEST_CASE("windows: the place where two texts part is kept for a third one") {
  const SchedulerLimits limits = windowed_limits(128, 1, 16'384);
  FakeEngine engine(limits);
  const std::vector<int32_t> common = fake_text(3000, 1);
  const auto text = [&](int i) { return joined(common, fake_text(200, 40 + 40 * i)); };
  engine.ask(1, {.prompt = text(1), .max_tokens = 5});
  engine.ask(2, {.prompt = fake_text(8000, 500), .max_tokens = 5});  // takes what was passed
  CHECK(engine.ask(3, {.prompt = text(3), .max_tokens = 5}).cached_tokens == 2048);
  engine.ask(4, {.prompt = fake_text(8000, 300), .max_tokens = 5});
  const GenerateRequest third{.prompt = text(5), .max_tokens = 5};
  CHECK(engine.ask(5, third).cached_tokens == 2944);
  CHECK(engine.answer(5).tokens == alone(third, limits).tokens);
  check_all_is_there(engine, limits);
}

TEST_CASE("windows: an answer can be continued wherever it ends") {
  for (const int reach : {64, 100, 128}) {
    for (int length = 1; length < 130; ++length) {
      CAPTURE(reach);
      CAPTURE(length);
      const SchedulerLimits limits = windowed_limits(reach, 1, 16'384);
      FakeEngine engine(limits);
      const GenerateRequest request{.prompt = fake_text(700, 1), .max_tokens = length};
      const auto all = joined(request.prompt, engine.ask(1, request).tokens);
      engine.ask(2, {.prompt = fake_text(8000, 500), .max_tokens = 5});
      const GenerateRequest next{.prompt = joined(all, fake_text(70, 3)), .max_tokens = 1};
      CHECK(engine.ask(3, next).cached_tokens == (699 + length) / 64 * 64);
    }
  }
}

TEST_CASE("windows: a step loads as many bytes of window pages as of pages") {
  const SchedulerLimits limits = windowed_limits(512);
  FakeDisk disk;
  const GenerateRequest request{.prompt = fake_text(1000, 1), .max_tokens = 3};
  save_all(disk, request, limits);
  disk.bytes_of_state = kLoadBytesBesideMax / 2;
  for (const bool is_beside : {false, true}) {
    FakeEngine engine(limits, &disk);
    if (is_beside) {
      engine.submit(9, {.prompt = {5}, .max_tokens = 100});
      REQUIRE(engine.plan());
      engine.complete();
    }
    engine.submit(1, request);
    size_t most = 0;
    while (engine.plan()) {
      most = std::max(most, engine.step.pages.state_loads.size());
      engine.complete();
    }
    CHECK(most == (is_beside ? 2 : 8));
    CHECK(engine.answer(1).cached_tokens == 960);
    CHECK(engine.answer(1).tokens == alone(request, limits).tokens);
  }
}

TEST_CASE(
    "windows: one in memory is not taken for one that is loaded, one that is lost ends nothing") {
  SchedulerLimits limits = windowed_limits(128, 1, 16'384);
  FakeDisk disk;
  disk.room = 0;
  FakeEngine engine(limits, &disk);
  const GenerateRequest request{.prompt = fake_text(700, 1), .max_tokens = 1};
  engine.ask(1, request);
  // As many ends of others as take some of its window pages.
  int others = 0;
  while (engine.ask(100, request).cached_tokens == 640 && others < 200) {
    engine.events.answers.erase(100);
    ++others;
    for (int i = 0; i < others; ++i) {
      const auto id = static_cast<uint64_t>(1000 * others + i);
      engine.ask(id, {.prompt = fake_text(200, 17 * (id % 997)), .max_tokens = 1});
    }
  }
  CHECK(others < 200);
  CHECK(engine.answer(100).tokens == alone(request, limits).tokens);
  check_all_is_there(engine, limits);
}

TEST_CASE("windows: copies of a prompt compute it once, all that run find theirs") {
  for (const int stages : {1, 2}) {
    const SchedulerLimits limits = windowed_limits(100, stages);
    FakeEngine engine(limits);
    std::vector<GenerateRequest> requests;
    for (int i = 0; i < 4; ++i) {
      requests.push_back(
          {.prompt = joined(fake_text(2000, 3), fake_text(20, 50 * i)), .max_tokens = 100});
      engine.submit(static_cast<uint64_t>(i), requests.back());
    }
    engine.run();
    for (size_t i = 0; i < requests.size(); ++i) {
      CHECK(engine.answer(i).tokens == alone(requests[i], limits).tokens);
      CHECK(engine.answer(i).cached_tokens == (i == 0 ? 0 : 1984));
    }
    check_all_is_there(engine, limits);
  }
}

TEST_CASE("windows: each turn feeds what is new and a page at most, in a new process each") {
  for (const int stages : {1, 3}) {
    for (const int reach : {16, 200}) {
      CAPTURE(stages);
      CAPTURE(reach);
      FakeDisk disk;
      const SchedulerLimits limits = windowed_limits(reach, stages, 1024);
      check_turns(
          disk, limits, 70,
          [&](const FakeEngine& engine, const FakeAnswer& answer, const GenerateRequest& request) {
            CHECK(answer.tokens == alone(request, limits).tokens);
            check_all_is_there(engine, limits);
          });
      CHECK(disk.saved_states == static_cast<int>(disk.windows.size()));
      CHECK(disk.loaded_states > 0);
    }
  }
}

TEST_CASE("windows: those of a prompt's end and of an answer's are saved, not those between") {
  const SchedulerLimits limits = windowed_limits(100, 1, 8192);
  FakeDisk disk;
  const GenerateRequest request{.prompt = fake_text(5000, 1), .max_tokens = 300};
  FakeEngine engine(limits, &disk);
  const auto all = joined(request.prompt, engine.ask(1, request).tokens);
  engine.save();
  CHECK(disk.pages.size() == 82);
  CHECK(disk.windows.size() == 4);
  for (const int end : {4928, 4992, 5184, 5248}) CHECK(disk.windows.contains(fake_key(all, end)));
  CHECK(engine.save() == 0);
  const GenerateRequest next{.prompt = joined(all, fake_text(100, 60)), .max_tokens = 3};
  FakeEngine second(limits, &disk);
  CHECK(second.ask(1, next).cached_tokens == 5248);
  CHECK(second.answer(1).tokens == alone(next, limits).tokens);
  CHECK(disk.loaded == 82);
  CHECK(disk.loaded_states == 2);
  // A beginning without window pages is of no use.
  const GenerateRequest part{.prompt = joined(fake_text(3000, 1), fake_text(9, 7)),
                             .max_tokens = 3};
  FakeEngine third(limits, &disk);
  CHECK(third.ask(1, part).cached_tokens == 0);
  CHECK(third.answer(1).tokens == alone(part, limits).tokens);
  CHECK(disk.loaded == 82);
}

TEST_CASE("windows: pages and window pages that cannot be loaded are computed") {
  for (const int stages : {1, 3}) {
    for (const int bad : {64, 256, 320, 576, 640}) {
      for (const bool is_window : {false, true}) {
        CAPTURE(stages);
        CAPTURE(bad);
        CAPTURE(is_window);
        const SchedulerLimits limits = windowed_limits(100, stages);
        FakeDisk disk;
        const GenerateRequest longer{.prompt = fake_text(700, 1), .max_tokens = 3};
        save_all(disk, {.prompt = fake_text(300, 1), .max_tokens = 1}, limits);
        save_all(disk, longer, limits);
        disk.bytes_of_page = kLoadBytesMax / 3;  // several steps
        const PageKey key = fake_key(longer.prompt, bad);
        (is_window ? disk.broken_states : disk.broken).insert(key);
        FakeEngine engine(limits, &disk);
        engine.submit(1, longer);
        engine.submit(2, longer);
        engine.run();
        const int loaded = is_window ? (bad < 576 ? 640 : 256) : (bad <= 256 ? 0 : 256);
        const bool is_in_way = !is_window || disk.forgotten_states.contains(key);
        CHECK(engine.answer(1).cached_tokens == (is_in_way ? loaded : 640));
        for (const uint64_t id : {1u, 2u}) {
          CHECK(engine.answer(id).tokens == alone(longer, limits).tokens);
        }
        check_all_is_there(engine, limits);
      }
    }
  }
}

TEST_CASE("windows: a sequence that is cancelled between its loads leaves its pages to others") {
  const SchedulerLimits limits = windowed_limits(200);
  FakeDisk disk;
  const GenerateRequest request{.prompt = fake_text(700, 3), .max_tokens = 3};
  save_all(disk, request, limits);
  disk.bytes_of_page = kLoadBytesMax / 3;
  for (int steps = 1; steps < 7; ++steps) {
    for (const bool is_in_flight : {false, true}) {
      CAPTURE(steps);
      CAPTURE(is_in_flight);
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
      CHECK(engine.answer(2).tokens == alone(request, limits).tokens);
    }
  }
}

TEST_CASE("windows: one that is taken by another page is saved by that step") {
  const SchedulerLimits limits = windowed_limits(64, 1, 16'384);
  FakeDisk disk;
  FakeEngine engine(limits, &disk);
  for (int i = 0; i < 60; ++i) {
    engine.ask(static_cast<uint64_t>(i), {.prompt = fake_text(100, 13 * i), .max_tokens = 1});
  }
  CHECK(disk.saved == 0);  // pages stay in memory
  CHECK(disk.saved_states > 0);
  const GenerateRequest again{.prompt = joined(fake_text(100, 0), fake_text(50, 7)),
                              .max_tokens = 30};
  CHECK(engine.ask(100, again).cached_tokens == 64);
  CHECK(engine.answer(100).tokens == alone(again, limits).tokens);
  CHECK(disk.loaded == 0);
  CHECK(disk.loaded_states == 1);
  check_all_is_there(engine, limits);
}

TEST_CASE("windows: pages before NaN logits and their window pages are removed from the disk") {
  const SchedulerLimits limits = windowed_limits(100);
  FakeDisk disk;
  std::vector<int32_t> prompt = fake_text(320, 3);
  FakeEngine engine(limits, &disk);
  engine.ask(1, {.prompt = prompt, .max_tokens = 1});
  engine.save();
  CHECK(disk.windows.size() > 1);
  prompt.push_back(kPoison);
  engine.ask(2, {.prompt = prompt, .max_tokens = 4});
  CHECK(engine.answer(2).end.find("not numbers") != std::string::npos);
  CHECK(disk.pages.empty());
  CHECK(disk.windows.empty());
  CHECK(engine.save() == 0);
  check_all_is_there(engine, limits);
}

namespace {

void mix_windowed_requests(int stages, int reach, bool has_disk) {
  std::mt19937 random(static_cast<unsigned>(stages + reach));
  SchedulerLimits limits = windowed_limits(reach, stages, 1200);
  limits.sequences_max = 3;
  limits.tokens_max = 200;
  const int without_spare = limits.sequences_max * (2 * window_span(reach) + 2) + 4;
  limits.window_pages = std::min(without_spare, pages_needed(limits));
  const MixedRequests requests = mixed_requests(16, 1000, 90, limits, random);
  FakeDisk disk;
  for (int process = 0; process < 12; ++process) {
    FakeEngine engine(limits, has_disk ? &disk : nullptr);
    disk.room = static_cast<int>(random() % 120);
    disk.bytes_of_page = random() % 2 == 0 ? 1 : kLoadBytesMax / 2;
    check_mix(engine, limits, disk, requests, random);
  }
  if (has_disk) CHECK(disk.loaded_states > 0);
}

}  // namespace

TEST_CASE("windows: any mix of requests, restarts, failures and cancellations changes no text") {
  for (const int stages : {1, 2, 4}) {
    for (const int reach : {2, 40, 128, 300}) {
      for (const bool has_disk : {false, true}) {
        CAPTURE(stages);
        CAPTURE(reach);
        CAPTURE(has_disk);
        mix_windowed_requests(stages, reach, has_disk);
      }
    }
  }
}
