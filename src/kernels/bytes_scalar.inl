// The vocabulary of quantised weights in plain C++: the reference that every other bytes_*.inl
// equals bit for bit. Included into the anonymous namespace of isa_scalar.cc after its F32x16.
//
// A quad is four columns of sixteen rows as bytes, (row, column in quad). Without registers for a
// quad, inlining gains nothing and makes the object file ten times larger.

#define LANES_CALL __attribute__((noinline))

struct Quad {
  uint8_t byte[64];

  static LANES_INLINE Quad load(const std::byte* from) {
    Quad quad;
    __builtin_memcpy(&quad, from, sizeof(quad));
    return quad;
  }
};

// The bits [Shift, Shift + Bits) of each byte.
template <int Shift, int Bits>
LANES_CALL Quad bits_of(Quad a) {
  for (int i = 0; i < 64; ++i) {
    a.byte[i] = static_cast<uint8_t>((a.byte[i] >> Shift) & ((1 << Bits) - 1));
  }
  return a;
}

// low | high << Shift, where no bit leaves its byte.
template <int Shift>
LANES_CALL Quad join_bits(Quad low, Quad high) {
  for (int i = 0; i < 64; ++i) {
    low.byte[i] = static_cast<uint8_t>(low.byte[i] | (high.byte[i] << Shift));
  }
  return low;
}

struct ByteTable {
  uint8_t byte[16];

  static LANES_INLINE ByteTable load(const uint8_t* from) {
    ByteTable table;
    __builtin_memcpy(&table, from, sizeof(table));
    return table;
  }
};

// Replaces each byte, which is below 16, by its table entry.
LANES_CALL Quad look_up(ByteTable table, Quad index) {
  for (int i = 0; i < 64; ++i) index.byte[i] = table.byte[index.byte[i]];
  return index;
}

// sum of (code - offset) * x over up to eight quads, in exact integers; codes are below 2^Bits, x
// from -127 to 127. `add` is called with K = 0, 1, 2, ...
template <int Bits>
struct Dot {
  int32_t sum[kLanes];

  static LANES_INLINE Dot start(int32_t sum_of_x, int32_t offset) {
    Dot dot;
    for (int i = 0; i < kLanes; ++i) dot.sum[i] = -offset * sum_of_x;
    return dot;
  }

  template <int K>
  LANES_CALL void add(const Quad& codes, const int8_t* x) {
    for (int i = 0; i < kLanes; ++i) {
      const uint8_t* code = codes.byte + 4 * i;
      sum[i] += code[0] * x[0] + code[1] * x[1] + code[2] * x[2] + code[3] * x[3];
    }
  }

  LANES_INLINE F32x16 finish() const {
    F32x16 r;
    for (int i = 0; i < kLanes; ++i) r.lane[i] = static_cast<float>(sum[i]);
    return r;
  }
};

// float(code - offset) of one column of a quad.
template <int Column>
LANES_CALL F32x16 column_codes(Quad quad, int32_t offset) {
  F32x16 r;
  for (int i = 0; i < kLanes; ++i) {
    r.lane[i] = static_cast<float>(quad.byte[4 * i + Column] - offset);
  }
  return r;
}

// E4M3 / 256 of one column of a quad.
template <int Column>
LANES_CALL F32x16 column_fp8(Quad quad) {
  F32x16 r;
  for (int i = 0; i < kLanes; ++i) r.lane[i] = to_float(half_of_fp8(quad.byte[4 * i + Column]));
  return r;
}

// Sixteen nibbles as floats, the lower one of a byte first.
LANES_CALL F32x16 load_u4(const std::byte* from) {
  F32x16 r;
  for (int i = 0; i < kLanes; ++i) {
    r.lane[i] = static_cast<float>(static_cast<uint32_t>(from[i / 2]) >> (4 * (i % 2)) & 15);
  }
  return r;
}
// Sixteen bytes as floats: unsigned, signed, E4M3 / 256, and 2^(e - 127).
LANES_CALL F32x16 load_u8(const std::byte* from) {
  F32x16 r;
  for (int i = 0; i < kLanes; ++i) r.lane[i] = static_cast<float>(static_cast<uint8_t>(from[i]));
  return r;
}
LANES_CALL F32x16 load_s8(const std::byte* from) {
  F32x16 r;
  for (int i = 0; i < kLanes; ++i) r.lane[i] = static_cast<float>(static_cast<int8_t>(from[i]));
  return r;
}
LANES_CALL F32x16 load_fp8(const std::byte* from) {
  F32x16 r;
  for (int i = 0; i < kLanes; ++i) {
    r.lane[i] = to_float(half_of_fp8(static_cast<uint8_t>(from[i])));
  }
  return r;
}
LANES_CALL F32x16 load_e8m0(const std::byte* from) {
  F32x16 r;
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t exponent = static_cast<uint32_t>(from[i]);
    r.lane[i] = float_of_bits(exponent == 0 ? 0x00400000u : exponent << 23);
  }
  return r;
}

// The largest bit pattern of |x|: a NaN's or an infinity's if there is one.
LANES_INLINE uint32_t max_magnitude(F32x16 x, F32x16 y) {
  uint32_t most = 0;
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t a = bits_of_float(x.lane[i]) & 0x7fffffffu;
    const uint32_t b = bits_of_float(y.lane[i]) & 0x7fffffffu;
    most = most > a ? most : a;
    most = most > b ? most : b;
  }
  return most;
}

// Writes the integers nearest to x, ties to even, and returns their sum; |x| is at most 127.5.
LANES_INLINE int32_t store_rounded(int8_t* to, F32x16 x) {
  int32_t sum = 0;
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t bits = bits_of_float(x.lane[i] + 0x1.8p23f);  // leaves them in the lowest bits
    to[i] = static_cast<int8_t>(static_cast<uint8_t>(bits));
    sum += to[i];
  }
  return sum;
}
