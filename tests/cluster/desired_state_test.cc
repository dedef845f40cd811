#include "cluster/state/desired_state.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>
#include <vector>

#include "cluster/seeded_random.h"
#include "cluster/state/desired_json.h"
#include "support/numbered_node.h"

using namespace lockstep;

namespace {

DesiredEntry entry(std::string name, int64_t time_ms, bool wanted = true, int by = 1) {
  DesiredEntry made;
  made.name = std::move(name);
  made.stamp = {time_ms, 0, node(by)};
  made.wanted = wanted;
  made.path = fmt::format("/models/{}", time_ms);
  return made;
}

DesiredState random_state(SeededRandom& random, size_t names) {
  DesiredState state;
  for (int i = 0; i < 30; ++i) {
    const auto number = random.between(1, static_cast<int64_t>(names));
    // Few distinct times, so that equal stamps with different content occur too.
    auto made = entry(fmt::format("m{}", number), random.between(1, 6), random.chance(0.5),
                      static_cast<int>(random.between(1, 2)));
    made.promises.context = random.between(0, 2);
    state.merge(made);
  }
  return state;
}

DesiredState merged(DesiredState a, const DesiredState& b) {
  a.merge(b);
  CHECK(!a.merge(b));
  return a;
}

}  // namespace

TEST_CASE("the later write of a name wins, also when it unloads") {
  DesiredState state;
  CHECK(state.merge(entry("a", 5)));
  CHECK(!state.merge(entry("a", 4, false)));
  CHECK(state.find("a")->wanted);
  CHECK(state.merge(entry("a", 6, false)));
  CHECK(!state.find("a")->wanted);
  CHECK(!state.put(entry("a", 6)).ok());
  CHECK(state.put(entry("a", 7)).ok());
  CHECK(state.find("a")->wanted);
}

TEST_CASE("a name is not a path; entries of older versions are kept and can be unloaded") {
  DesiredState state;
  for (const char* name : {"../../x", "..", ".", "a/../b", "/etc/passwd", "a/", "a//b", "a\\b"}) {
    CAPTURE(name);
    const Status refused = state.put(entry(name, 5));
    REQUIRE(!refused.ok());
    CHECK(refused.error().code == ErrorCode::kInvalidArgument);
    CHECK(state.merge(entry(name, 5)));
    CHECK(state.put(entry(name, 6, false)).ok());
  }
  for (const char* name : {"a", "org/name", "org/name..v2", "llama3:8b", ".hidden", "a.b/c-d"}) {
    CHECK_MESSAGE(state.put(entry(name, 7)).ok(), name);
  }
  DesiredEntry with_alias = entry("b", 8);
  with_alias.promises.aliases = {"../gpt"};
  CHECK(!state.put(with_alias).ok());
}

TEST_CASE(
    "merging is commutative, associative and idempotent, and equal states have equal digests") {
  SeededRandom random(1);
  for (int round = 0; round < 300; ++round) {
    const auto a = random_state(random, 12);
    const auto b = random_state(random, 12);
    const auto c = random_state(random, 12);
    const auto left = merged(merged(a, b), c);
    const auto right = merged(a, merged(c, b));
    REQUIRE(left == right);
    REQUIRE(left.digest() == right.digest());
    REQUIRE(merged(a, a) == a);
    if (!(a == b)) REQUIRE(a.digest() != b.digest());
  }
}

TEST_CASE("beyond the limit of names the oldest writes are dropped, whatever the merge order") {
  std::vector<DesiredEntry> entries;
  for (int i = 0; i < 1100; ++i)
    entries.push_back(entry(fmt::format("m{}", i), 1000 + i * 7 % 1100));
  DesiredState forward;
  for (const auto& one : entries) forward.merge(one);
  DesiredState backward;
  for (auto one = entries.rbegin(); one != entries.rend(); ++one) backward.merge(*one);
  CHECK(forward.entries().size() == kDesiredNamesMax);
  CHECK(forward == backward);
  CHECK(forward.digest() == backward.digest());
  for (const auto& [name, kept] : forward.entries()) CHECK(kept.stamp.time_ms >= 1076);
}

TEST_CASE("a user is told which limit a write exceeds") {
  DesiredState state;
  for (size_t i = 0; i < kDesiredLiveMax; ++i) {
    REQUIRE(state.put(entry(fmt::format("m{}", i), static_cast<int64_t>(i + 1))).ok());
  }
  const auto full = state.put(entry("one-more", 1000));
  REQUIRE(!full.ok());
  CHECK(full.error().message ==
        "64 models are already loaded or on demand, unload one before 'one-more'");
  CHECK(state.put(entry("m1", 1000, false)).ok());
  CHECK(state.put(entry("one-more", 1000)).ok());

  CHECK(!check_entry(entry("", 1)).ok());
  CHECK(!check_entry(entry("line\nbreak", 1)).ok());
  CHECK(!check_entry(entry(std::string(257, 'x'), 1)).ok());
  CHECK(!check_entry(entry("a", kStampMsMax + 1)).ok());
  auto negative = entry("a", 1);
  negative.promises.streams = -1;
  CHECK(!check_entry(negative).ok());
}

TEST_CASE("an entry survives JSON, and broken JSON is named") {
  auto made = entry("näme \"x\"", 123);
  made.promises = {.context = 4096,
                   .streams = 8,
                   .parallel = 2,
                   .parallelism = Parallelism::kPipeline,
                   .pinned = {node(3), node(4)},
                   .aliases = {"alias"},
                   .idle_unload_s = 600,
                   .replicas = 3};
  CHECK(entry_text(made).find("ngrams_on_disk") == std::string::npos);
  CHECK(entry_text(made).find("draft_model") == std::string::npos);  // as earlier versions wrote it
  made.draft_model = "/models/small";
  made.promises.ngrams_on_disk = true;
  made.promises.kv = "q8";
  const auto read = entry_of(entry_json(made));
  REQUIRE(read.ok());
  CHECK(read.value() == made);
  CHECK(entry_text(read.value()) == entry_text(made));
  for (const std::string text : {"{}", "[]", R"({"name":"a","stamp":[1,2],"promises":{}})"}) {
    const auto broken = entry_of(parse_json(text).value());
    REQUIRE(!broken.ok());
    CHECK(broken.error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("a new placement is needed for other promises, not for other names") {
  const auto before = entry("a", 1);
  auto after = entry("a", 1, true, 2);
  after.promises.aliases = {"b"};
  after.promises.idle_unload_s = 60;
  CHECK(placement_key(before) == placement_key(after));
  after.promises.context = 8192;
  CHECK(placement_key(before) != placement_key(after));
  after = before;
  after.promises.replicas = 2;
  CHECK(placement_key(before) != placement_key(after));
  after = before;
  after.promises.parallelism = Parallelism::kPipeline;
  CHECK(placement_key(before) != placement_key(after));
  CHECK(entry_of(entry_json(after)).value() == after);
  after = before;
  after.draft_model = "/models/small";
  CHECK(placement_key(before) != placement_key(after));
}

TEST_CASE("an entry reads its model and its draft model, with the same limits") {
  auto made = entry("a", 1);
  CHECK(made.reads(made.path));
  CHECK(!made.reads(""));
  made.draft_model = "org/small";
  CHECK((made.reads(made.path) && made.reads("org/small") && !made.reads("org/other")));
  made.draft_model = std::string(kModelPathBytesMax + 1, 'x');
  CHECK(!check_entry(made).ok());
  made.draft_model = "\xff";
  CHECK(!check_entry(made).ok());
}

TEST_CASE("stamps keep growing when the wall clock is set back, and exceed those seen") {
  StampClock clock(node(1), 5);
  const Stamp first = clock.next(1'000);
  const Stamp second = clock.next(500);
  CHECK(second > first);
  CHECK(second.time_ms == 1'000);
  clock.observe({9'000, 4, node(2)});
  const Stamp third = clock.next(2'000);
  CHECK(third > Stamp{9'000, 4, node(2)});
  CHECK(third.node == node(1));
  CHECK(clock.next(10'000) == Stamp{10'000, 0, node(1), 5});
}

TEST_CASE("a node that restarts at the same clock time gives other stamps") {
  StampClock before(node(1), 5);
  StampClock after(node(1), 6);
  CHECK(before.next(1'000) != after.next(1'000));
  auto made = entry("a", 1);
  made.stamp = StampClock(node(1), 7).next(1'000);
  CHECK(entry_of(entry_json(made)).value().stamp.incarnation == 7);
}

TEST_CASE("replicas default to 1 and have a limit") {
  auto made = entry("a", 1);
  made.promises.replicas = kReplicasMax;
  REQUIRE(entry_of(entry_json(made)).ok());
  CHECK(entry_of(entry_json(made)).value().promises.replicas == kReplicasMax);
  std::string text = entry_text(made);
  const std::string field = R"("replicas":16)";
  const size_t at = text.find(field);
  REQUIRE(at != std::string::npos);
  for (const char* bad : {R"("replicas":0)", R"("replicas":17)", R"("replicas":"2")"}) {
    std::string broken = text;
    broken.replace(at, field.size(), bad);
    CHECK(!entry_of(parse_json(broken).value()).ok());
  }
  // The text as an earlier version wrote it.
  const size_t begin = text[at - 1] == ',' ? at - 1 : at;
  text.erase(begin, field.size() + 1);
  const auto old = entry_of(parse_json(text).value());
  REQUIRE_MESSAGE(old.ok(), (old.ok() ? "" : old.error().message));
  CHECK(old.value().promises.replicas == 1);
  made.promises.replicas = 0;
  CHECK(check_entry(made).error().message.find("1 to 16 replicas, not 0") != std::string::npos);
}
