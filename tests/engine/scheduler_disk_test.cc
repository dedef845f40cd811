// Pages of state on a disk: which are loaded, which are saved and when, and that they never change
// a text.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/fake_pages.h"
#include "support/fake_turns.h"
#include "support/joined.h"

using namespace lockstep;

namespace {

PageKey key_of_page(const std::vector<int32_t>& tokens, size_t page) {
  return fake_key(tokens, (static_cast<int>(page) + 1) * kPagePositions);
}

SchedulerLimits limits_of(int stages) {
  SchedulerLimits limits = kFakeLimits;
  limits.stages = stages;
  return limits;
}

}  // namespace

TEST_CASE("each turn of a conversation feeds the new tokens, even if every turn is a new process") {
  for (const int stages : {1, 3}) {
    CAPTURE(stages);
    FakeDisk disk;
    check_turns(disk, limits_of(stages), 50,
                [&](const FakeEngine&, const FakeAnswer& answer, const GenerateRequest& request) {
                  CHECK(answer.tokens == alone(request).tokens);
                });
  }
}

TEST_CASE("the last token of a prompt is fed, even if all of it is on the disk") {
  for (const int size : {1, 63, 64, 65, 127, 128, 129}) {
    CAPTURE(size);
    FakeDisk disk;
    const GenerateRequest request{.prompt = fake_text(size, 3), .max_tokens = 3};
    FakeEngine first(kFakeLimits, &disk);
    const FakeAnswer computed = first.ask(1, request);
    first.save();
    FakeEngine second(kFakeLimits, &disk);
    const FakeAnswer loaded = second.ask(1, request);
    CHECK(loaded.tokens == computed.tokens);
    CHECK(loaded.cached_tokens == (size - 1) / kPagePositions * kPagePositions);
    CHECK(second.ask(2, request).cached_tokens == loaded.cached_tokens);
    CHECK(disk.loaded == loaded.cached_tokens / kPagePositions);  // the others were in memory
  }
}

TEST_CASE("a loaded page is not saved again") {
  FakeDisk disk;
  const GenerateRequest request{.prompt = fake_text(500, 3), .max_tokens = 3};
  FakeEngine first(kFakeLimits, &disk);
  first.ask(1, request);
  CHECK(first.save() == 7);
  FakeEngine second(kFakeLimits, &disk);
  second.ask(1, request);
  CHECK(second.save() == 0);
}

TEST_CASE("copies of a prompt load its pages once") {
  FakeDisk disk;
  const std::vector<int32_t> beginning = fake_text(400, 3);
  FakeEngine first(kFakeLimits, &disk);
  first.ask(1, {.prompt = beginning, .max_tokens = 1});
  first.save();
  FakeEngine engine(kFakeLimits, &disk);
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < 4; ++i) {
    requests.push_back({.prompt = joined(beginning, fake_text(20, 50 * i)), .max_tokens = 5});
    REQUIRE(engine.scheduler.submit(static_cast<uint64_t>(i), requests.back()).ok());
  }
  engine.run();
  for (size_t i = 0; i < requests.size(); ++i) {
    CHECK(engine.answer(i).tokens == alone(requests[i]).tokens);
    CHECK(engine.answer(i).cached_tokens == 384);
  }
  CHECK(disk.loaded == 6);
}

TEST_CASE("a step loads a limited number of bytes, and fewer while sequences decode") {
  FakeDisk disk;
  disk.bytes_of_page = kLoadBytesMax / 8;
  const GenerateRequest request{.prompt = fake_text(1000, 3), .max_tokens = 3};
  FakeEngine first(kFakeLimits, &disk);
  first.ask(1, request);
  first.save();
  for (const bool is_beside : {false, true}) {
    FakeEngine engine(kFakeLimits, &disk);
    if (is_beside) {
      REQUIRE(engine.scheduler.submit(7, {.prompt = {5}, .max_tokens = 100}).ok());
      REQUIRE(engine.plan());
      engine.complete();
    }
    REQUIRE(engine.scheduler.submit(1, request).ok());
    std::vector<size_t> loads;
    while (engine.plan()) {
      if (!engine.step.pages.loads.empty()) loads.push_back(engine.step.pages.loads.size());
      if (is_beside && loads.size() < 7) CHECK(engine.step.batch.token_count() >= 1);
      engine.complete();
    }
    const auto expected =
        is_beside ? std::vector<size_t>{2, 2, 2, 2, 2, 2, 2, 1} : std::vector<size_t>{8, 7};
    CHECK(loads == expected);
    CHECK(engine.answer(1).tokens == alone(request).tokens);
  }
  disk.bytes_of_page = 10 * kLoadBytesMax;  // always one
  FakeEngine engine(kFakeLimits, &disk);
  CHECK(engine.ask(1, request).cached_tokens == 960);
}

TEST_CASE("a page that cannot be loaded is forgotten and computed, and so are those after it") {
  const std::vector<int32_t> prompt = fake_text(700, 3);
  const GenerateRequest request{.prompt = prompt, .max_tokens = 3};
  const FakeAnswer expected = alone(request);
  for (const int stages : {1, 2}) {
    for (const size_t bad : {0u, 3u, 9u}) {
      CAPTURE(bad);
      FakeDisk disk;
      FakeEngine first(kFakeLimits, &disk);
      first.ask(1, request);
      first.save();
      disk.broken.insert(key_of_page(prompt, bad));
      FakeEngine engine(limits_of(stages), &disk);
      REQUIRE(engine.scheduler.submit(1, request).ok());
      REQUIRE(engine.scheduler.submit(2, request).ok());
      engine.run();
      for (const uint64_t id : {1u, 2u}) CHECK(engine.answer(id).tokens == expected.tokens);
      // A chunk of eight pages ends before the ninth, after which pages can be loaded again.
      const size_t loaded = stages == 1 && bad == 0 ? 2 : bad;
      CHECK(engine.answer(1).cached_tokens == static_cast<int>(loaded) * kPagePositions);
      CHECK(engine.answer(2).cached_tokens == 640);
      CHECK(disk.forgotten == std::set<PageKey>{key_of_page(prompt, bad)});
      disk.broken.clear();
      CHECK(engine.save() == 1);
      CHECK(FakeEngine(kFakeLimits, &disk).ask(1, request).cached_tokens == 640);
    }
  }
}

TEST_CASE("a sequence that is cancelled while its pages are loaded leaves them to others") {
  for (const int stages : {1, 3}) {
    FakeDisk disk;
    const GenerateRequest request{.prompt = fake_text(700, 3), .max_tokens = 3};
    FakeEngine first(kFakeLimits, &disk);
    first.ask(1, request);
    first.save();
    FakeEngine engine(limits_of(stages), &disk);
    REQUIRE(engine.scheduler.submit(1, request).ok());
    REQUIRE(engine.plan());
    CHECK(engine.step.pages.loads.size() == 10);
    CHECK(engine.scheduler.cancel(1));
    CHECK(!engine.scheduler.cancel(1));
    engine.complete();
    CHECK(!engine.plan());
    CHECK(engine.scheduler.page_counts().cached == 10);
    const auto counts = engine.scheduler.page_counts();
    CHECK(counts.free + counts.cached == counts.all);
    CHECK(engine.ask(2, request).cached_tokens == 640);
    CHECK(disk.loaded == 10);
  }
}

TEST_CASE("evicted pages are saved in the step that reuses their memory, if there is room") {
  SchedulerLimits limits = kFakeLimits;
  limits.sequences_max = 1;  // 16 pages
  FakeDisk disk;
  FakeEngine engine(limits, &disk);
  const std::vector<int32_t> prompt = fake_text(640, 3);
  const GenerateRequest request{.prompt = prompt, .max_tokens = 1};
  engine.ask(1, request);
  engine.ask(2, {.prompt = fake_text(960, 400), .max_tokens = 1});
  CHECK(disk.saved > 0);
  CHECK(disk.saved < 10);  // the others were too many for their steps
  const FakeAnswer again = engine.ask(3, request);
  CHECK(again.tokens == alone(request).tokens);
  disk.room = 0;
  const int saved = disk.saved;
  engine.ask(4, {.prompt = fake_text(960, 700), .max_tokens = 1});
  CHECK(disk.saved == saved);
}

TEST_CASE("a page for which another rank has no room is saved again later") {
  FakeDisk disk;
  disk.is_full_elsewhere = true;
  FakeEngine engine(kFakeLimits, &disk);
  const std::vector<int32_t> prompt = fake_text(200, 3);
  engine.ask(1, {.prompt = prompt, .max_tokens = 1});
  REQUIRE(engine.plan_save());
  engine.complete();
  CHECK(engine.scheduler.take_save_failed());
  CHECK(!engine.scheduler.take_save_failed());
  CHECK(engine.scheduler.page_counts().unsaved == 3);
  CHECK(disk.pages.size() == 1);  // this rank's part is saved
  disk.is_full_elsewhere = false;
  REQUIRE(engine.plan_save());
  CHECK(engine.step.pages.saves[0].key == key_of_page(prompt, 0));
  engine.complete();
  CHECK(engine.save() == 2);
  CHECK(!engine.scheduler.take_save_failed());
}

TEST_CASE("if a rank has no store no more pages are saved or loaded, and all is computed") {
  FakeDisk disk;
  const GenerateRequest request{.prompt = fake_text(700, 3), .max_tokens = 3};
  FakeEngine first(kFakeLimits, &disk);
  first.ask(1, request);
  first.save();
  disk.lacks_elsewhere = true;
  for (const bool loads : {true, false}) {
    FakeEngine engine(kFakeLimits, &disk);
    GenerateRequest asked = request;
    if (!loads) asked.prompt = fake_text(300, 500);
    REQUIRE(engine.scheduler.submit(1, asked).ok());
    REQUIRE(engine.scheduler.submit(2, asked).ok());
    engine.run();
    CHECK(engine.answer(1).tokens == alone(asked).tokens);
    CHECK(engine.answer(1).cached_tokens == 0);
    CHECK(engine.save() == (loads ? 0 : 1));
    CHECK(!engine.scheduler.has_unsaved());
    CHECK(engine.ask(3, asked).tokens == alone(asked).tokens);
  }
}

TEST_CASE("pages before NaN logits are removed from the disk too") {
  FakeDisk disk;
  std::vector<int32_t> prompt = fake_text(320, 3);
  FakeEngine engine(kFakeLimits, &disk);
  engine.ask(1, {.prompt = prompt, .max_tokens = 1});
  engine.save();
  CHECK(disk.pages.size() == 5);
  prompt.push_back(kPoison);
  CHECK(engine.ask(2, {.prompt = prompt, .max_tokens = 4}).end.find("not numbers") !=
        std::string::npos);
  CHECK(disk.pages.empty());
  CHECK(engine.save() == 0);
}

TEST_CASE("a request for all logits of a prompt, or a mean of its states, loads nothing") {
  FakeDisk disk;
  GenerateRequest request{.prompt = fake_text(700, 3), .max_tokens = 3};
  FakeEngine first(kFakeLimits, &disk);
  first.ask(1, request);
  first.save();
  FakeEngine engine(kFakeLimits, &disk);
  request.prompt_logits = true;
  CHECK(engine.ask(1, request).cached_tokens == 0);
  CHECK(disk.loaded == 0);
}

TEST_CASE("without a disk no step contains page orders") {
  FakeEngine engine(kFakeLimits);  // checks each step
  engine.ask(1, {.prompt = fake_text(700, 3), .max_tokens = 30});
  CHECK(!engine.plan_save());
  CHECK(!engine.scheduler.has_unsaved());
}

TEST_CASE("any mix of requests, restarts, failures and cancellations leaves every text unchanged") {
  for (const int stages : {1, 2, 4}) {
    std::mt19937 random(static_cast<unsigned>(stages));
    SchedulerLimits limits = limits_of(stages);
    limits.sequences_max = 3;
    limits.context = 400;
    MixedRequests requests;
    for (int i = 0; i < 12; ++i) {
      const auto beginning = fake_text(static_cast<int>(random() % 300), 100 * (i % 3));
      requests.known.push_back(
          {.prompt = joined(beginning, fake_text(1 + static_cast<int>(random() % 60), i)),
           .max_tokens = 1 + static_cast<int>(random() % 40)});
      requests.known.back().chunk = random() % 3 == 0 ? 50 : 0;
      requests.expected.push_back(FakeEngine(limits).ask(1, requests.known.back()).tokens);
    }
    FakeDisk disk;
    for (int process = 0; process < 12; ++process) {
      FakeEngine engine(limits, &disk);
      disk.room = static_cast<int>(random() % 40);
      disk.bytes_of_page = random() % 2 == 0 ? 1 : kLoadBytesMax / 2;
      check_mix(engine, limits, disk, requests, random);
    }
    CHECK(disk.loaded > 30);
    CHECK(disk.saved > 50);
  }
}
