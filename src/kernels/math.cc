#include "kernels/math.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

namespace lockstep {
namespace {

#include "kernels/simd_scalar.inl"

#include "kernels/generic/math.inl"

// Adding it to a number below 2^51 leaves the nearest integer in the lowest bits.
constexpr double kRoundShift = 0x1.8p52;

uint64_t bits_of(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

double double_of(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// 2^n for n in [-1022, 1023].
double power_of_two(int64_t n) {
  return double_of(static_cast<uint64_t>(n + 1023) << 52);
}

template <size_t Count>
double polynomial(const double (&coefficients)[Count], double x) {  // highest power first
  double sum = coefficients[0];
  for (size_t i = 1; i < Count; ++i) sum = std::fma(sum, x, coefficients[i]);
  return sum;
}

// ln 2 in two parts; the first has 33 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42fefap-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;

// 1 / k!: with |r| <= ln 2 / 2 the first omitted term, r^14 / 14!, is below 5e-18.
constexpr double kExpTaylor[] = {1.0 / 6227020800.0,
                                 1.0 / 479001600.0,
                                 1.0 / 39916800.0,
                                 1.0 / 3628800.0,
                                 1.0 / 362880.0,
                                 1.0 / 40320.0,
                                 1.0 / 5040.0,
                                 1.0 / 720.0,
                                 1.0 / 120.0,
                                 1.0 / 24.0,
                                 1.0 / 6.0,
                                 0.5,
                                 1.0,
                                 1.0};

// 1 / (2k + 1): atanh(s) = s * (1 + s^2 / 3 + s^4 / 5 + ...); with s^2 < 0.0295 the first omitted
// term is below 1e-18.
constexpr double kAtanhTaylor[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                   1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};

// Taylor series on [-pi/4, pi/4] in x^2; the first omitted terms are below 1e-19 and 3e-18.
constexpr double kSineTaylor[] = {
    1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
    1.0 / 362880.0,          -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0};
constexpr double kCosineTaylor[] = {
    1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0,
    1.0 / 40320.0,          -1.0 / 720.0,         1.0 / 24.0,        -0.5};

constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;
constexpr double kHalfPiMiddle = 0x1.1a62633145c07p-54;
constexpr double kHalfPiLow = -0x1.f1976b7ed8fbcp-110;

}  // namespace

float exp_f32(float x) {
  return first_lane(exp_lanes(Lanes<1>::broadcast(x)));
}

float sigmoid_f32(float x) {
  return first_lane(sigmoid_lanes(Lanes<1>::broadcast(x)));
}

float softplus_f32(float x) {
  return first_lane(softplus_lanes(Lanes<1>::broadcast(x)));
}

float log_f32(float x) {
  return static_cast<float>(log_f64(static_cast<double>(x)));
}

double exp_f64(double x) {
  if (!(x < 709.79)) return x != x ? x : std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0.0;
  const double n = std::fma(x, 0x1.71547652b82fep+0, kRoundShift) - kRoundShift;
  const double r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  const auto exponent = static_cast<int64_t>(n);
  const int64_t half = exponent / 2;  // two steps, since 2^n alone may be out of range
  return polynomial(kExpTaylor, r) * power_of_two(half) * power_of_two(exponent - half);
}

double log_f64(double x) {
  if (!(x > 0.0)) {
    return x == 0.0 ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
  }
  if (x == std::numeric_limits<double>::infinity()) return x;
  const bool is_subnormal = x < std::numeric_limits<double>::min();
  const uint64_t bits = bits_of(is_subnormal ? x * 0x1p54 : x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023 - (is_subnormal ? 54 : 0);
  double mantissa = double_of((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa > 0x1.6a09e667f3bcdp+0) {  // sqrt(2): keeps the mantissa near 1
    mantissa *= 0.5;
    ++exponent;
  }
  const double f = mantissa - 1.0;  // exact
  const double s = f / (2.0 + f);
  const double s2 = s * s;
  const double tail = 2.0 * s * s2 * polynomial(kAtanhTaylor, s2);
  const auto e = static_cast<double>(exponent);
  return std::fma(e, kLn2High, 2.0 * s + std::fma(e, kLn2Low, tail));
}

SinCos sincos_f64(double x) {
  // x = n * pi / 2 + r. The first step is exact, since n * kHalfPiHigh - x is below 1 and a
  // multiple of the last bit of both; the other two round to 2^-53.
  const double shifted = std::fma(x, 0x1.45f306dc9c883p-1, kRoundShift);
  const double n = shifted - kRoundShift;
  double r = std::fma(n, -kHalfPiHigh, x);
  r = std::fma(n, -kHalfPiMiddle, r);
  r = std::fma(n, -kHalfPiLow, r);
  const double r2 = r * r;
  const double sine = std::fma(r * r2, polynomial(kSineTaylor, r2), r);
  const double cosine = std::fma(r2, polynomial(kCosineTaylor, r2), 1.0);
  switch (bits_of(shifted) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace lockstep
