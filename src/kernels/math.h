// Our own elementary functions: a fixed sequence of IEEE operations, so that every machine and
// compiler gives the same bits. The float functions equal the vector versions in
// kernels/generic/math.inl bit for bit. Plain portable code; accuracy is stated for each and tested
// against the C library.
#pragma once

#include <cstdint>

namespace lockstep {

float exp_f32(float x);       // at most 2 ulp on [-87, 88]; 0 below, +inf above
float sigmoid_f32(float x);   // 1 / (1 + exp(-x))
float softplus_f32(float x);  // log(1 + exp(x))
float log_f32(float x);       // x > 0, at most 2 ulp
double exp_f64(double x);     // relative error below 1e-14 on [-700, 700]
double log_f64(double x);     // x > 0, relative error below 1e-14
// Sine and cosine of an angle in radians, absolute error below 1e-12 for |x| below 1e7.
struct SinCos {
  double sine;
  double cosine;
};
SinCos sincos_f64(double x);

}  // namespace lockstep
