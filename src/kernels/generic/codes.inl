// The codes of a block (layout: packed_matrix.h) as eight quads.

template <int Value>
struct Constant {
  static constexpr int value = Value;
};

// A lambda that must be inlined: it works on registers of the enclosing function.
#define LANES_LAMBDA __attribute__((always_inline))

// Calls operation(Constant<Begin>), ..., operation(Constant<End - 1>): shifts need constants.
template <int Begin, int End, class Operation>
LANES_INLINE void for_constants(Operation operation) {
  if constexpr (Begin < End) {
    operation(Constant<Begin>{});
    for_constants<Begin + 1, End>(operation);
  }
}

constexpr int kQuads = kBlockColumns / 4;

constexpr int code_bits(PackedCodes codes) {
  switch (codes) {
    case PackedCodes::kBits2:
      return 2;
    case PackedCodes::kBits3:
      return 3;
    case PackedCodes::kBits4:
    case PackedCodes::kTable4:
      return 4;
    case PackedCodes::kBits5:
      return 5;
    case PackedCodes::kBits6:
      return 6;
    default:
      return 8;
  }
}

constexpr size_t block_bytes(PackedCodes codes) {
  return size_t{64} * static_cast<size_t>(code_bits(codes));
}

// Quad K from vectors that hold Bits bits of 8 / Bits quads each.
template <int Bits, int K>
LANES_INLINE Quad load_bits(const std::byte* from) {
  constexpr int kQuadsPerVector = 8 / Bits;
  return bits_of<Bits*(K % kQuadsPerVector), Bits>(Quad::load(from + 64 * (K / kQuadsPerVector)));
}

// Quad K of the block at `from`, before subtracting `offset`.
template <PackedCodes kCodes, int K>
LANES_INLINE Quad load_quad(const std::byte* from, [[maybe_unused]] const ByteTable& table) {
  constexpr int kBits = code_bits(kCodes);
  if constexpr (kCodes == PackedCodes::kTable4) {
    return look_up(table, load_bits<4, K>(from));
  } else if constexpr (kBits == 8) {
    return Quad::load(from + 64 * K);
  } else if constexpr (kBits == 2 || kBits == 4) {
    return load_bits<kBits, K>(from);
  } else {
    constexpr int kLowBits = kBits == 3 ? 2 : 4;
    return join_bits<kLowBits>(load_bits<kLowBits, K>(from),
                               load_bits<kBits - kLowBits, K>(from + 64 * kLowBits));
  }
}

// Bits of the bytes in a quad: the entries of a table may use all eight.
constexpr int quad_bits(PackedCodes codes) {
  return codes == PackedCodes::kTable4 ? 8 : code_bits(codes);
}
