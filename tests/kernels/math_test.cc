#include "kernels/math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "kernels/definition.h"
#include "kernels/test_data.h"
#include "support/flushing.h"

namespace lockstep {
namespace {

// The distance from `value` to `exact` in units of the last place of the float nearest to `exact`.
double ulps(float value, long double exact) {
  const float nearest = std::fabs(static_cast<float>(exact));
  const double unit =
      std::max(static_cast<double>(std::nextafter(nearest, INFINITY) - nearest), 0x1p-149);
  return static_cast<double>(std::fabs(static_cast<long double>(value) - exact)) / unit;
}

double relative_error(double value, long double exact) {
  return static_cast<double>(std::fabs((static_cast<long double>(value) - exact) / exact));
}

double between(SampleRandom& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random.bits() >> 11) * 0x1p-53);
}

}  // namespace

TEST_CASE("exp_f32 is within 2 ulp on [-87, 88]") {
  SampleRandom random(1);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const auto x =
        static_cast<float>(i % 2 == 0 ? between(random, -87, 88) : between(random, -1, 1));
    worst = std::max(worst, ulps(exp_f32(x), std::exp(static_cast<long double>(x))));
  }
  INFO("worst ulp ", worst);
  CHECK(worst <= 2.0);
}

TEST_CASE("exp_f32 reaches zero and infinity at its ends and keeps NaN") {
  CHECK(exp_f32(0.0f) == 1.0f);
  CHECK(exp_f32(-0.0f) == 1.0f);
  CHECK(exp_f32(-87.4f) == 0.0f);
  CHECK(exp_f32(-1e30f) == 0.0f);
  CHECK(exp_f32(-INFINITY) == 0.0f);
  CHECK(exp_f32(88.73f) == INFINITY);
  CHECK(exp_f32(1e30f) == INFINITY);
  CHECK(exp_f32(INFINITY) == INFINITY);
  CHECK(std::isnan(exp_f32(NAN)));
  CHECK(ulps(exp_f32(88.72283f), std::exp(static_cast<long double>(88.72283f))) <= 2.0);
  CHECK(ulps(exp_f32(-87.33654f), std::exp(static_cast<long double>(-87.33654f))) <= 2.0);
}

TEST_CASE("sigmoid_f32 is 1 / (1 + exp(-x)) within 4 ulp and reaches 0 and 1") {
  SampleRandom random(2);
  double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const auto x = static_cast<float>(between(random, -80, 80));
    worst = std::max(worst,
                     ulps(sigmoid_f32(x), 1.0L / (1.0L + std::exp(-static_cast<long double>(x)))));
  }
  INFO("worst ulp ", worst);
  CHECK(worst <= 4.0);
  CHECK(sigmoid_f32(0.0f) == 0.5f);
  CHECK(sigmoid_f32(1000.0f) == 1.0f);
  CHECK(sigmoid_f32(-1000.0f) == 0.0f);
  CHECK(std::isnormal(sigmoid_f32(-87.33f)));
  CHECK(sigmoid_f32(std::nextafter(-87.33f, -100.0f)) == 0.0f);
  CHECK(std::isnan(sigmoid_f32(NAN)));
}

TEST_CASE("softplus_f32 is log(1 + exp(x)) within 4 ulp, and has the bits of its definition") {
  SampleRandom random(7);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto x = static_cast<float>(i % 2 == 0 ? between(random, -86, 90) : random.unit());
    const float found = softplus_f32(x);
    REQUIRE(std::bit_cast<uint32_t>(found) == std::bit_cast<uint32_t>(definition::softplus(x)));
    worst = std::max(worst, ulps(found, std::log1p(std::exp(static_cast<long double>(x)))));
  }
  INFO("worst ulp ", worst);
  CHECK(worst <= 4.0);
  CHECK(softplus_f32(0.0f) == definition::softplus(0.0f));
  CHECK(softplus_f32(-100.0f) == 0.0f);
  CHECK(softplus_f32(1e30f) == 1e30f);
  CHECK(softplus_f32(INFINITY) == INFINITY);
  CHECK(std::isnan(softplus_f32(NAN)));
}

TEST_CASE(
    "exp_f32 and sigmoid_f32 are never subnormal, and the same where subnormals are flushed") {
  SampleRandom random(9);
  for (int i = 0; i < 100000; ++i) {
    const float x = random.unit() * 110.0f;
    const float exponential = exp_f32(x), opened = sigmoid_f32(x);
    REQUIRE((exponential == 0.0f || !(exponential < 0x1p-126f)));
    REQUIRE((opened == 0.0f || !(opened < 0x1p-126f)));
    const Flushing flushing;
    REQUIRE(exp_f32(x) == exponential);
    REQUIRE(sigmoid_f32(x) == opened);
  }
}

TEST_CASE("log_f32 is within 2 ulp of the logarithm, subnormal numbers included") {
  SampleRandom random(3);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(1 + random.bits() % 0x7f7fffff);
    const float x =
        i % 2 == 0 ? std::bit_cast<float>(bits) : static_cast<float>(between(random, 0.5, 2));
    worst = std::max(worst, ulps(log_f32(x), std::log(static_cast<long double>(x))));
  }
  INFO("worst ulp ", worst);
  CHECK(worst <= 2.0);
  CHECK(log_f32(1.0f) == 0.0f);
}

TEST_CASE("exp_f64 has a relative error below 1e-14 on [-700, 700]") {
  SampleRandom random(4);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = i % 2 == 0 ? between(random, -700, 700) : between(random, -1, 1);
    worst = std::max(worst, relative_error(exp_f64(x), std::exp(static_cast<long double>(x))));
  }
  INFO("worst relative error ", worst);
  CHECK(worst < 1e-14);
  CHECK(exp_f64(0.0) == 1.0);
  CHECK(exp_f64(-1e6) == 0.0);
  CHECK(exp_f64(-INFINITY) == 0.0);
  CHECK(exp_f64(1e6) == INFINITY);
  CHECK(exp_f64(INFINITY) == INFINITY);
  CHECK(std::isnan(exp_f64(NAN)));
  CHECK(exp_f64(-740.0) > 0.0);
  CHECK(std::isfinite(exp_f64(709.7)));
}

TEST_CASE("log_f64 has a relative error below 1e-14 for every positive number") {
  SampleRandom random(5);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = 1 + random.bits() % 0x7feffffffffffffeu;
    const double x = i % 2 == 0 ? std::bit_cast<double>(bits) : between(random, 0.5, 2);
    worst = std::max(worst, relative_error(log_f64(x), std::log(static_cast<long double>(x))));
  }
  INFO("worst relative error ", worst);
  CHECK(worst < 1e-14);
  CHECK(log_f64(1.0) == 0.0);
  CHECK(relative_error(log_f64(1 + 0x1p-52), std::log1p(0x1p-52L)) < 1e-14);
  CHECK(relative_error(log_f64(0x1p-1074), std::log(0x1p-1074L)) < 1e-14);
  CHECK(log_f64(0.0) == -INFINITY);
  CHECK(log_f64(INFINITY) == INFINITY);
  CHECK(std::isnan(log_f64(-1.0)));
  CHECK(std::isnan(log_f64(NAN)));
}

TEST_CASE("sincos_f64 is within 1e-12 for angles up to 1e7") {
  SampleRandom random(6);
  double worst = 0;
  const auto look_at = [&](double x) {
    const SinCos got = sincos_f64(x);
    const auto exact = static_cast<long double>(x);
    worst = std::max(worst, static_cast<double>(std::fabs(got.sine - std::sin(exact))));
    worst = std::max(worst, static_cast<double>(std::fabs(got.cosine - std::cos(exact))));
  };
  for (int i = 0; i < 200000; ++i) look_at(between(random, -1e7, 1e7));
  for (int i = 0; i < 50000; ++i) look_at(between(random, -8, 8));
  for (int i = 0; i < 50000; ++i) look_at(static_cast<double>(i * 127) * M_PI_4);  // near the seams
  for (int i = 0; i < 50000; ++i) look_at(static_cast<double>(i));
  look_at(1e-300);
  look_at(0x1p-1074);
  INFO("worst error ", worst);
  CHECK(worst < 1e-12);
  CHECK(sincos_f64(0.0).sine == 0.0);
  CHECK(sincos_f64(0.0).cosine == 1.0);
}

}  // namespace lockstep
