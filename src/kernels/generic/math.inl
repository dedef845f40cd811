// Elementary functions over lanes. A fixed sequence of operations: the same bits in every
// vocabulary.

constexpr float kExpLeast = -87.33654f;   // exp of it is about 2^-126, the smallest normal number
constexpr float kSigmoidLeast = -87.33f;  // sigmoid of it is a normal number

// exp(x): 2^n * exp(r) with n = round(x / ln 2), |r| <= ln 2 / 2, and a polynomial of degree 7 for
// exp(r) (coefficients of Cephes' expf). Results below the smallest normal number are 0.
template <class V>
LANES_INLINE V exp_lanes(V x) {
  const V round_shift = V::broadcast(0x1.8p23f);  // adding it leaves round(x) in the lowest bits
  const V shifted = fma(x, V::broadcast(0x1.715476p+0f), round_shift);
  const V n = sub(shifted, round_shift);
  V r = fma(n, V::broadcast(-0x1.62e4p-1f), x);  // ln 2 in two parts, the first with 15 bits
  r = fma(n, V::broadcast(-0x1.7f7d1cp-20f), r);

  V p = V::broadcast(1.9875691500e-4f);
  p = fma(p, r, V::broadcast(1.3981999507e-3f));
  p = fma(p, r, V::broadcast(8.3334519073e-3f));
  p = fma(p, r, V::broadcast(4.1665795894e-2f));
  p = fma(p, r, V::broadcast(1.6666665459e-1f));
  p = fma(p, r, V::broadcast(5.0000001201e-1f));
  p = fma(p, mul(r, r), r);
  p = add(p, V::broadcast(1.0f));

  const V infinity = V::broadcast(__builtin_inff());
  V y = add_exponent(p, shifted);
  y = select_less(x, V::broadcast(kExpLeast), V::broadcast(0.0f), y);
  y = select_less(V::broadcast(88.72283f), x, infinity, y);  // 2^128
  return select_less(x, infinity, y, x);                     // keeps NaN
}

// 1 / (1 + exp(-x)); 0 where that would be subnormal.
template <class V>
LANES_INLINE V sigmoid_lanes(V x) {
  const V zero = V::broadcast(0.0f), one = V::broadcast(1.0f);
  const V y = div(one, add(one, exp_lanes(sub(zero, x))));
  return select_less(x, V::broadcast(kSigmoidLeast), zero, y);
}

// log(1 + exp(x)) = max(x, 0) + log1p(u) with u = exp(-|x|), and log1p(u) = 2 atanh(u / (2 + u)) by
// its series: the first omitted term is below 2e-9.
template <class V>
LANES_INLINE V softplus_lanes(V x) {
  const V zero = V::broadcast(0.0f);
  const V u = exp_lanes(sub(zero, max(x, sub(zero, x))));
  const V s = div(u, add(V::broadcast(2.0f), u));
  const V s2 = mul(s, s);
  V p = V::broadcast(1.0f / 15);
  p = fma(p, s2, V::broadcast(1.0f / 13));
  p = fma(p, s2, V::broadcast(1.0f / 11));
  p = fma(p, s2, V::broadcast(1.0f / 9));
  p = fma(p, s2, V::broadcast(1.0f / 7));
  p = fma(p, s2, V::broadcast(1.0f / 5));
  p = fma(p, s2, V::broadcast(1.0f / 3));
  const V twice = add(s, s);
  return add(max(x, zero), fma(mul(twice, s2), p, twice));
}
