#include "node/disks/transfer_rate.h"

#include <doctest/doctest.h>

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

const TransferRate::Clock::time_point kBegin{1'000s};

}  // namespace

TEST_CASE("a rate counts the last five seconds, and less only at the beginning") {
  TransferRate rate(kBegin);
  CHECK(rate.at(kBegin) == 0);
  rate.note(kBegin + 1s, 1'000);
  CHECK(rate.at(kBegin + 1s) == doctest::Approx(1'000));
  CHECK(rate.at(kBegin + 2s) == doctest::Approx(500));
  for (int s = 2; s <= 60; ++s) rate.note(kBegin + 1s * s, static_cast<uint64_t>(s) * 1'000);
  CHECK(rate.at(kBegin + 60s) == doctest::Approx(1'000));
}

TEST_CASE("a rate falls to 0 when nothing arrives, whether or not that is noted") {
  TransferRate rate(kBegin);
  for (int ms = 100; ms <= 10'000; ms += 100) {
    rate.note(kBegin + 1ms * ms, static_cast<uint64_t>(ms) * 10);
  }
  CHECK(rate.at(kBegin + 10s) == doctest::Approx(10'000));
  CHECK(rate.at(kBegin + 12s) == doctest::Approx(6'000));
  CHECK(rate.at(kBegin + 15s) == 0);
  CHECK(rate.at(kBegin + 100s) == 0);
  for (int s = 11; s <= 20; ++s) rate.note(kBegin + 1s * s, 100'000);
  CHECK(rate.at(kBegin + 20s) == 0);
}

TEST_CASE("notes are few however often they come, and a smaller count changes nothing") {
  TransferRate rate(kBegin);
  uint64_t bytes = 0;
  for (int ms = 0; ms <= 20'000; ++ms) rate.note(kBegin + 1ms * ms, bytes += 5);
  CHECK(rate.at(kBegin + 20s) == doctest::Approx(5'000).epsilon(0.05));
  rate.note(kBegin + 20s, 3);
  CHECK(rate.at(kBegin + 20s) == doctest::Approx(5'000).epsilon(0.05));
}
