#include "base/meters/rate_window.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

RateWindow::Time at(int ms) {
  return RateWindow::Time{} + milliseconds(ms);
}

}  // namespace

TEST_CASE("a rate is the growth over the last seconds") {
  RateWindow rate;
  CHECK(rate.at(at(0)) == 0);
  rate.note(at(0), 0);
  CHECK(rate.at(at(0)) == 0);
  rate.note(at(1000), 500);
  CHECK(rate.at(at(1000)) == doctest::Approx(500));
  for (int second = 2; second <= 20; ++second) rate.note(at(second * 1000), 400 + 100u * second);
  CHECK(rate.at(at(20'000)) == doctest::Approx(100));
}

TEST_CASE("a rate falls to 0 while nothing is noted, and while the count stands still") {
  RateWindow silent, still;
  for (int i = 0; i <= 50; ++i) {
    silent.note(at(i * 100), 10u * i);
    still.note(at(i * 100), 10u * i);
  }
  CHECK(silent.at(at(5000)) == doctest::Approx(100));
  CHECK(silent.at(at(7500)) < 60);
  CHECK(silent.at(at(10'000)) == 0);
  for (int i = 51; i <= 100; ++i) still.note(at(i * 100), 500);
  CHECK(still.at(at(10'000)) == 0);
  still.note(at(11'000), 1500);
  CHECK(still.at(at(11'000)) > 0);
}

TEST_CASE("a smaller count begins again") {
  RateWindow rate;
  rate.note(at(0), 1000);
  rate.note(at(1000), 2000);
  rate.note(at(2000), 100);
  CHECK(rate.at(at(2000)) == 0);
  rate.note(at(3000), 200);
  CHECK(rate.at(at(3000)) == doctest::Approx(100));
}

}  // namespace lockstep
