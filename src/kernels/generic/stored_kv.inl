// Keys and values as pages hold them (KvKind and PageArgs in kernels.h): rounding and writing them,
// and reading them as float32.

template <KvKind Kind>
struct KvStorage;
template <>
struct KvStorage<KvKind::kF32> {
  using Element = float;
};
template <>
struct KvStorage<KvKind::kBF16> {
  using Element = BF16;
};
template <>
struct KvStorage<KvKind::kF16> {
  using Element = F16;
};
template <>
struct KvStorage<KvKind::kQ8> {
  using Element = int8_t;
};
template <KvKind Kind>
using KvElement = typename KvStorage<Kind>::Element;

// body.template operator()<Kind>() for the kind of some pages.
template <class Body>
LANES_INLINE void for_kind(KvKind kind, Body body) {
  switch (kind) {
    case KvKind::kF32:
      return body.template operator()<KvKind::kF32>();
    case KvKind::kBF16:
      return body.template operator()<KvKind::kBF16>();
    case KvKind::kF16:
      return body.template operator()<KvKind::kF16>();
    case KvKind::kQ8:
      return body.template operator()<KvKind::kQ8>();
  }
}

// Sixteen stored elements; codes still lack their scale.
template <class Element>
LANES_INLINE F32x16 load_elements(const Element* from) {
  return F32x16::load(from);
}
LANES_INLINE F32x16 load_elements(const int8_t* from) {
  return load_s8(reinterpret_cast<const std::byte*>(from));
}
// The first `count` of them, zero in the other lanes; no memory beyond them is read.
template <class Element>
LANES_INLINE F32x16 load_elements(const Element* from, int count) {
  if (count == kLanes) return load_elements(from);
  Element elements[kLanes] = {};
  for (int i = 0; i < count; ++i) elements[i] = from[i];
  return load_elements(elements);
}
LANES_INLINE F32x16 load_elements(const float* from, int count) {
  return F32x16::load_partial(from, count);
}

// kBlockColumns columns of one head and position; the scale is only used with kQ8.
template <KvKind Kind>
struct KvRounded {
  KvElement<Kind> elements[kBlockColumns];
  BF16 scale;
};

LANES_INLINE void round_block(BlockInput x, KvRounded<KvKind::kQ8>& to) {
  const uint32_t most = max_magnitude(x.low, x.high);
  const bool is_nan = most >= bits_of_float(kKvMost);
  if (is_nan || most < bits_of_float(kBlockLeast)) {
    to = {};
    if (is_nan) to.scale = {0x7fc0};
    return;
  }
  const uint32_t exact = bits_of_float(float_of_bits(most) / 127.0f);
  to.scale = {static_cast<uint16_t>((exact + 0xffffu) >> 16)};
  const F32x16 factor = F32x16::broadcast(1.0f / to_float(to.scale));
  store_rounded(to.elements, mul(x.low, factor));
  store_rounded(to.elements + kLanes, mul(x.high, factor));
}
template <KvKind Kind>
LANES_INLINE void round_block(BlockInput x, KvRounded<Kind>& to) {
  if constexpr (Kind == KvKind::kF32) {
    store(to.elements, x.low);
    store(to.elements + kLanes, x.high);
  } else {
    store_rounded(to.elements, x.low);
    store_rounded(to.elements + kLanes, x.high);
  }
}

// Where elements, and scales with kQ8, of one head and position lie: neighbouring columns (or
// blocks) are `stride` apart.
template <KvKind Kind>
struct KvPlace {
  KvElement<Kind>* elements;
  BF16* scales;
  size_t stride;
};

// `head` is the beginning of a head's keys in a page.
template <KvKind Kind>
LANES_INLINE KvPlace<Kind> place_of_key(std::byte* head, int head_dim, int slot) {
  const auto group = static_cast<size_t>(slot / kLanes), lane = static_cast<size_t>(slot % kLanes);
  const auto blocks = static_cast<size_t>(kv_blocks(head_dim));
  return {reinterpret_cast<KvElement<Kind>*>(head) +
              group * static_cast<size_t>(head_dim) * kLanes + lane,
          reinterpret_cast<BF16*>(head + kv_scales_at(head_dim)) + group * blocks * kLanes + lane,
          kLanes};
}
template <KvKind Kind>
LANES_INLINE KvPlace<Kind> place_of_value(std::byte* head, int head_dim, int slot) {
  const auto position = static_cast<size_t>(slot);
  const auto blocks = static_cast<size_t>(kv_blocks(head_dim));
  return {reinterpret_cast<KvElement<Kind>*>(head) + position * static_cast<size_t>(head_dim),
          reinterpret_cast<BF16*>(head + kv_scales_at(head_dim)) + position * blocks, 1};
}

template <KvKind Kind>
void store_columns(const float* x, int columns, KvPlace<Kind> to) {
  for (int begin = 0; begin < columns; begin += kBlockColumns) {
    const int rest = columns - begin;
    const int count = rest < kBlockColumns ? rest : kBlockColumns;
    KvRounded<Kind> block;
    round_block(load_block(x + begin, count), block);
    KvElement<Kind>* elements = to.elements + static_cast<size_t>(begin) * to.stride;
    for (int i = 0; i < count; ++i)
      elements[static_cast<size_t>(i) * to.stride] = block.elements[i];
    if constexpr (Kind == KvKind::kQ8) {
      to.scales[static_cast<size_t>(begin / kBlockColumns) * to.stride] = block.scale;
    }
  }
}

template <KvKind Kind>
void store_kind(const StoreKvArgs& args) {
  const PageArgs& pages = args.pages;
  const size_t head_stride = page_head_stride(Kind, pages.head_dim);
  for (int token = args.token_begin; token < args.token_end; ++token) {
    const int slot = args.slot[token];
    const float* key = args.keys;
    if (key != nullptr) key += static_cast<size_t>(token) * args.keys_stride;
    const float* value = args.values + static_cast<size_t>(token) * args.values_stride;
    size_t place = static_cast<size_t>(args.page[token]) * pages.page_stride;
    for (int head = 0; head < pages.kv_heads; ++head) {
      if (key != nullptr) {
        store_columns(key, pages.head_dim,
                      place_of_key<Kind>(pages.keys + place, pages.head_dim, slot));
        key += pages.head_dim;
      }
      store_columns(value, pages.value_dim,
                    place_of_value<Kind>(pages.values + place, pages.head_dim, slot));
      value += pages.value_dim;
      place += head_stride;
    }
  }
}

void store_kv(const StoreKvArgs& args) {
  for_kind(args.pages.kind, [&]<KvKind Kind>() { store_kind<Kind>(args); });
}
