#include "router/backend_choice.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr int kKeys = 1000;

std::vector<BackendLoad> idle(const std::vector<std::string>& names) {
  std::vector<BackendLoad> loads;
  for (const std::string& name : names) loads.push_back({.name = name});
  return loads;
}

std::map<uint64_t, std::string> owners(const std::vector<BackendLoad>& backends) {
  std::map<uint64_t, std::string> owners;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const auto chosen = choose_backend(backends, key, 0, {});
    REQUIRE(chosen.has_value());
    owners[key] = backends[*chosen].name;
  }
  return owners;
}

}  // namespace

TEST_CASE("without an eligible backend there is no choice") {
  CHECK(!choose_backend({}, 1, 0, {}).has_value());
  CHECK(!choose_backend({}, std::nullopt, 0, {}).has_value());
  const std::vector<BackendLoad> none{{.name = "a", .may_answer = false}};
  CHECK(!choose_backend(none, 1, 0, {}).has_value());
}

TEST_CASE("a prefix has one backend, whatever the order, and all get their share") {
  const std::vector<std::string> names{"http://a:1", "http://b:1", "http://c:1", "http://d:1"};
  const auto forwards = owners(idle(names));
  CHECK(forwards == owners(idle({names.rbegin(), names.rend()})));
  std::map<std::string, int> counts;
  for (const auto& [key, owner] : forwards) ++counts[owner];
  REQUIRE(counts.size() == names.size());
  for (const auto& [owner, count] : counts) {
    CHECK(count > kKeys / 8);  // a quarter each, more or less
    CHECK(count < kKeys / 2);
  }
}

TEST_CASE("removing a backend moves only its own prefixes") {
  std::vector<std::string> names{"http://a:1", "http://b:1", "http://c:1"};
  auto backends = idle(names);
  const auto before = owners(backends);
  backends[1].may_answer = false;
  const auto after = owners(backends);
  for (const auto& [key, owner] : before) {
    if (owner != names[1]) CHECK(after.at(key) == owner);
    if (owner == names[1]) CHECK(after.at(key) != owner);
  }
}

TEST_CASE("the owner of a prefix answers until it is much busier than the least busy one") {
  const std::vector<std::string> names{"http://a:1", "http://b:1", "http://c:1"};
  auto backends = idle(names);
  const uint64_t key = 7;
  const BalanceLimits limits{.busy_factor = 2.0, .busy_slack = 4};
  const size_t owner = *choose_backend(backends, key, 0, limits);
  struct Case {
    int owner_running, others_running;
    bool stays;
  };
  for (const Case& row : {Case{0, 0, true}, Case{4, 0, true}, Case{5, 0, false}, Case{10, 3, true},
                          Case{11, 3, false}, Case{24, 10, true}, Case{25, 10, false}}) {
    for (BackendLoad& backend : backends) backend.running = row.others_running;
    backends[owner].running = row.owner_running;
    CAPTURE(row.owner_running);
    CAPTURE(row.others_running);
    CHECK((*choose_backend(backends, key, 0, limits) == owner) == row.stays);
  }
}

TEST_CASE("an ineligible backend does not count as the least busy one") {
  const std::vector<std::string> names{"http://a:1", "http://b:1"};
  auto backends = idle(names);
  for (BackendLoad& backend : backends) backend.running = 100;
  backends.push_back({.name = "http://c:1", .may_answer = false, .running = 0});
  CHECK(choose_backend(backends, 1, 0, {}).has_value());
  CHECK(*choose_backend(backends, 1, 0, {}) < 2);
}

TEST_CASE("without a prefix the least busy one answers, and equals take turns") {
  const std::vector<std::string> names{"http://a:1", "http://b:1", "http://c:1"};
  auto backends = idle(names);
  backends[0].running = 3;
  backends[1].running = 2;
  backends[2].running = 3;
  for (uint64_t ticket = 0; ticket < 20; ++ticket) {
    CHECK(*choose_backend(backends, std::nullopt, ticket, {}) == 1);
  }
  backends[1].running = 3;
  std::map<size_t, int> counts;
  for (uint64_t ticket = 0; ticket < 300; ++ticket) {
    ++counts[*choose_backend(backends, std::nullopt, ticket, {})];
  }
  CHECK(counts.size() == 3);
}

}  // namespace lockstep
