// The language of all kernels: memory by address, and arithmetic with the bits of the processor's
// kernels (kernels/simd_scalar.inl, kernels/generic/math.inl).
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require

#include "params.h"

// A block of activations (kernels/packed_matrix.h), at a multiple of 16 bytes.
struct InputBlock8 {
  int codes[8];  // of four columns in a word
  float scale;
  int sum;
  int sums[2];  // of the halves
};
struct InputBlockF {
  float values[32];
  float sum;
  float sums[2];
};

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ints { int at[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Halves { uint16_t at[]; };
layout(buffer_reference, std430, buffer_reference_align = 1) buffer Bytes { uint8_t at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Inputs8 { InputBlock8 at; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer InputsF { InputBlockF at; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Addresses { uvec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Matrices { MatrixInfo at; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Steps { StepInfo at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Blocks { BlockInfo at[]; };

// The address of the kernel's parameters.
layout(push_constant) uniform Push { uvec2 params; } push;
#define PARAMETERS(type) \
  layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer ParamsOf { type at; };
#define PARAMS (ParamsOf(push.params).at)

// How fma() is rounded once: 0 by the device's own, which is known to do so; 1 by float64, for
// devices whose own is a product and a sum (lavapipe of Mesa 22). 2: a test that plays a device on
// which a kernel is wrong; both are rounded.
layout(constant_id = 0) const uint kFma = 0u;
// 1: a test that plays a device which flushes subnormal numbers, as Apple's do.
layout(constant_id = 1) const uint kFlush = 0u;

const uint kInfinityBits = 0x7f800000u;
const uint kNanBits = 0x7fc00000u;
const uint kSignBit = 0x80000000u;

bool is_none(uvec2 address) { return address == uvec2(0u); }
// `count` times `bytes` further on.
uvec2 advance(uvec2 address, uint count, uint bytes) {
  uint high, low, carry;
  umulExtended(count, bytes, high, low);
  const uint sum = uaddCarry(address.x, low, carry);
  return uvec2(sum, address.y + high + carry);
}

uvec2 advance(uvec2 address, uint bytes) {
  uint carry;
  const uint low = uaddCarry(address.x, bytes, carry);
  return uvec2(low, address.y + carry);
}

uint bits_of(float x) { return floatBitsToUint(x); }
float of_bits(uint x) { return uintBitsToFloat(x); }
uint magnitude_bits(float x) { return bits_of(x) & ~kSignBit; }
bool is_nan(float x) { return magnitude_bits(x) > kInfinityBits; }

float flushed(float x) {
  if (kFlush == 1u && (bits_of(x) & kInfinityBits) == 0u) return of_bits(bits_of(x) & kSignBit);
  return x;
}

#ifdef HAS_FLOAT64
// The product is exact in float64 (24 + 24 bits). Its sum with c is rounded to odd (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums", 2008), so that rounding it once more
// to float32 is right.
float fma_by_double(float a, float b, float c) {
  precise double product = double(a) * double(b);
  const double addend = double(c);
  precise double sum = product + addend;
  precise double of_product = sum - addend;
  precise double of_addend = sum - of_product;
  precise double error = (product - of_product) + (addend - of_addend);
  if (error != 0.0LF && !isinf(sum) && !isnan(sum)) {
    uvec2 bits = unpackDouble2x32(sum);
    if ((bits.x & 1u) == 0u) {  // even: the neighbour in the direction of the error is odd
      if ((error > 0.0LF) == (sum > 0.0LF)) {
        bits.x += 1u;
      } else {
        if (bits.x == 0u) bits.y -= 1u;
        bits.x -= 1u;
      }
      sum = packDouble2x32(bits);
    }
  }
  return float(sum);
}
#endif

float exact_mul(float a, float b) {
  precise float result = flushed(a) * flushed(b);
  return flushed(result);
}
float exact_add(float a, float b) {
  precise float result = flushed(a) + flushed(b);
  return flushed(result);
}
float exact_fma(float a, float b, float c) {
  a = flushed(a);
  b = flushed(b);
  c = flushed(c);
#ifdef HAS_FLOAT64
  if (kFma == 1u) return flushed(fma_by_double(a, b, c));
#endif
  if (kFma == 2u) return exact_add(exact_mul(a, b), c);
  precise float result = fma(a, b, c);
  return flushed(result);
}
float exact_sub(float a, float b) {
  precise float result = flushed(a) - flushed(b);
  return flushed(result);
}
float larger(float a, float b) { return a > b ? a : b; }

// Steps by which the device's own quotients and roots may be wrong (2.5 ulp in Vulkan), and more.
const int kUlpsMax = 5;

// A number with this sign, this significand in [1, 2) and this exponent. A subnormal one is 0.
float pack_float(uint sign, uint significand, int exponent) {
  const int biased = exponent + 127;
  if (biased >= 255) return of_bits(sign | kInfinityBits);
  if (biased < 1) return of_bits(sign);
  return of_bits(sign | (uint(biased) << 23) | (significand & 0x7fffffu));
}

// a / b, rounded once to the nearest; subnormal operands and results are 0. The device's own
// quotient is corrected by exact remainders: a quotient of two floats is never halfway between two
// floats, so the smallest remainder is that of the nearest.
float exact_div(float a, float b) {
  const uint x = magnitude_bits(a), y = magnitude_bits(b);
  const uint sign = (bits_of(a) ^ bits_of(b)) & kSignBit;
  if (x > kInfinityBits || y > kInfinityBits) return of_bits(kNanBits);
  const bool is_zero = x < 0x00800000u, by_zero = y < 0x00800000u;
  if ((is_zero && by_zero) || (x == kInfinityBits && y == kInfinityBits)) return of_bits(kNanBits);
  if (is_zero || y == kInfinityBits) return of_bits(sign);
  if (by_zero || x == kInfinityBits) return of_bits(sign | kInfinityBits);
  const float divisor = of_bits((y & 0x7fffffu) | 0x3f800000u);
  float dividend = of_bits((x & 0x7fffffu) | 0x3f800000u);
  int exponent = int(x >> 23) - int(y >> 23);
  if (dividend < divisor) {
    dividend = exact_mul(dividend, 2.0);
    exponent -= 1;
  }
  precise float own = dividend / divisor;
  uint best = bits_of(own);
  float remainder = exact_fma(-of_bits(best), divisor, dividend);
  [[unroll]] for (int i = 0; i < kUlpsMax; ++i) {
    const uint other = remainder > 0.0 ? best + 1u : best - 1u;
    const float rest = exact_fma(-of_bits(other), divisor, dividend);
    if (abs(rest) < abs(remainder)) {
      best = other;
      remainder = rest;
    }
  }
  return pack_float(sign, best, int(best >> 23) - 127 + exponent);
}

// The square root of x >= 0, rounded once; of a subnormal x it is 0.
float exact_sqrt(float x) {
  if (is_nan(x) || (x < 0.0 && magnitude_bits(x) >= 0x00800000u)) return of_bits(kNanBits);
  if (magnitude_bits(x) < 0x00800000u || bits_of(x) == kInfinityBits) {
    return bits_of(x) == kInfinityBits ? x : 0.0;
  }
  const int exponent = int(bits_of(x) >> 23) - 127;
  const int halved = exponent >> 1;  // rounded down
  const float scaled = of_bits((bits_of(x) & 0x7fffffu) | (uint(127 + (exponent & 1)) << 23));
  precise float own = sqrt(scaled);  // in [1, 2)
  uint best = bits_of(own);
  // The root lies between best - ulp / 2 and best + ulp / 2; ulp / 2 squared is 2^-48.
  [[unroll]] for (int i = 0; i < kUlpsMax; ++i) {
    const float root = of_bits(best), ulp = of_bits(0x34000000u);  // 2^-23
    const float remainder = exact_fma(-root, root, scaled);
    const float above = exact_fma(-root, ulp, remainder), below = exact_fma(root, ulp, remainder);
    const float quarter = of_bits(0x27800000u);
    if (above > quarter) {
      best += 1u;
    } else if (below < quarter) {
      best -= 1u;
    }
  }
  return of_bits(best + (uint(halved) << 23));
}

// kernels/generic/math.inl.
float exact_exp(float x) {
  const float shift = 12582912.0;  // 1.5 * 2^23
  const float shifted = exact_fma(x, of_bits(0x3fb8aa3bu), shift);
  const float n = exact_sub(shifted, shift);
  float r = exact_fma(n, -of_bits(0x3f317200u), x);
  r = exact_fma(n, -of_bits(0x35bfbe8eu), r);
  float p = 1.9875691500e-4;
  p = exact_fma(p, r, 1.3981999507e-3);
  p = exact_fma(p, r, 8.3334519073e-3);
  p = exact_fma(p, r, 4.1665795894e-2);
  p = exact_fma(p, r, 1.6666665459e-1);
  p = exact_fma(p, r, 5.0000001201e-1);
  p = exact_fma(p, exact_mul(r, r), r);
  p = exact_add(p, 1.0);
  float y = of_bits(bits_of(p) + (bits_of(shifted) << 23));
  if (x < -87.33654) y = 0.0;
  if (88.72283 < x) y = of_bits(kInfinityBits);
  return x < of_bits(kInfinityBits) ? y : x;  // keeps NaN
}
float exact_sigmoid(float x) {
  const float y = exact_div(1.0, exact_add(1.0, exact_exp(exact_sub(0.0, x))));
  return x < -87.33 ? 0.0 : y;
}

// kernels/generic/recurrent.inl; the numbers are 1/15, 1/13, ... 1/3.
float exact_softplus(float x) {
  const float u = exact_exp(exact_sub(0.0, larger(x, exact_sub(0.0, x))));
  const float s = exact_div(u, exact_add(2.0, u));
  const float s2 = exact_mul(s, s);
  float p = of_bits(0x3d888889u);
  p = exact_fma(p, s2, of_bits(0x3d9d89d9u));
  p = exact_fma(p, s2, of_bits(0x3dba2e8cu));
  p = exact_fma(p, s2, of_bits(0x3de38e39u));
  p = exact_fma(p, s2, of_bits(0x3e124925u));
  p = exact_fma(p, s2, of_bits(0x3e4ccccdu));
  p = exact_fma(p, s2, of_bits(0x3eaaaaabu));
  const float twice = exact_add(s, s);
  return exact_add(larger(x, 0.0), exact_fma(exact_mul(twice, s2), p, twice));
}

// root_softplus() in device/cpu/router.cc.
float exact_root_softplus(float x) {
  return x < -86.0 ? 0.0 : exact_sqrt(exact_softplus(x));
}

// Conversions by integers, whatever a device does with subnormal numbers.
float of_half(uint half_bits) {
  const uint sign = (half_bits & 0x8000u) << 16, magnitude = half_bits & 0x7fffu;
  const uint small = bits_of(float(magnitude) * 5.9604644775390625e-8);  // 2^-24
  const uint biased = (magnitude << 13) + (magnitude < 0x7c00u ? 112u << 23 : 224u << 23);
  const uint quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
  return of_bits(sign | (magnitude < 0x0400u ? small : biased | quiet));
}
float of_bf16(uint bits) { return of_bits(bits << 16); }
// E4M3 / 256.
float of_fp8(uint bits) {
  const uint magnitude = bits & 0x7fu, least = 113u << 23;  // of the normal numbers: 2^-14
  const float small = exact_sub(of_bits((magnitude << 20) + least), of_bits(least));
  const uint biased = (magnitude << 20) + (112u << 23);
  return of_bits((bits & 0x80u) << 24 | (magnitude < 8u ? bits_of(small) : biased));
}
float of_e8m0(uint exponent) { return of_bits(exponent == 0u ? 0x00400000u : exponent << 23); }

// The nearest, ties to even; a finite value stays finite.
uint to_bf16(float x) {
  const uint magnitude = magnitude_bits(x), sign = (bits_of(x) >> 16) & 0x8000u;
  uint half_bits = (magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16;
  if (magnitude < kInfinityBits && half_bits > 0x7f7fu) half_bits = 0x7f7fu;
  if (magnitude > kInfinityBits) half_bits = (magnitude >> 16) | 0x40u;
  return sign | half_bits;
}
uint to_half(float x) {
  const uint magnitude = magnitude_bits(x), sign = (bits_of(x) >> 16) & 0x8000u;
  uint half_bits = 0u;
  if (magnitude > kInfinityBits) {
    half_bits = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude == kInfinityBits) {
    half_bits = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14
    half_bits = min((magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13, 0x7bffu);
  } else if (magnitude > 0x33000000u) {  // 2^-25
    const uint significand = (magnitude & 0x7fffffu) | 0x800000u;
    const uint shift = 126u - (magnitude >> 23);
    half_bits = (significand + (1u << (shift - 1u)) - 1u + ((significand >> shift) & 1u)) >> shift;
  }
  return sign | half_bits;
}

// Blocks of columns as integers: kBlockLeast in kernels/packed_matrix.h, and the integer nearest to
// x, ties to even, for |x| up to 127.5.
const uint kBlockLeastBits = 0x0d800000u;  // 2^-100
int rounded(float x) { return bitfieldExtract(int(bits_of(exact_add(x, 12582912.0))), 0, 8); }
