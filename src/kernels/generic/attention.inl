// Attention over pages (layout: PageArgs in kernels.h).
// Sixteen positions of a page's keys are adjacent, so a score is one lane's chain over head_dim.
// Slots beyond the position are uninitialised memory: their lanes are replaced before use, and
// their values are never read.

// The most query heads served by one pass over the pages, with their running state.
constexpr int kHeadsMax = 16;

// Heads, or rows, whose chains run side by side. Registers without lanes have no room for several.
constexpr int kChains = kSumsMax > 1 ? 4 : 1;

struct PageHead {
  const std::byte* keys;    // (kPagePositions / kLanes, head_dim, kLanes)
  const std::byte* values;  // (kPagePositions, head_dim), the first value_dim
  int head_dim;
  int value_dim;
  int first;  // attention covers positions [first, count) of this page; at least one
  int count;
};

// The softmax of one head so far: maximum and sum of exp(score - maximum). The weighted values are
// in the output.
struct HeadState {
  float maximum;
  float sum;
};

// A page's effect on a head: its probabilities, and the factors that scale the values of earlier
// pages and of this one to their common maximum.
struct PageWeights {
  float probability[kPagePositions];
  float scale_before;
  float scale_page;
};

// Memory that is fetched into the cache while as much other memory is computed with: the values of
// a page during its scores, the next page's keys during its values. A page's part of a head is too
// short for the processor to notice in time that it is read in order. It goes into the second
// level, as weights do (FetchDistance), and with codes of one byte into the first: on Zen 4 each
// takes 0.7 to 0.8 of the time that the other level takes.
struct Ahead {
  const std::byte* at;
  bool is_wanted;

  template <class Element>
  LANES_INLINE void fetch(size_t elements) {
    if (!is_wanted) return;
    fetch_lines<sizeof(Element) == 1 ? kFirstLevel : kSecondLevel>(at, elements * sizeof(Element));
    at += elements * sizeof(Element);
  }
};

// Continues the chains of `score` over `columns` columns of the keys of `Groups` groups of sixteen
// positions; the keys and the query's elements begin at the first one. Codes are multiplied by
// `scales`, which other kinds lack.
template <class Element, int Heads, int Groups>
LANES_INLINE void score_columns(const Element* keys, size_t group_stride, int columns,
                                const float* query, size_t query_stride,
                                const F32x16 (&scales)[Groups], F32x16 (&score)[Heads][Groups],
                                Ahead& ahead) {
  for (int i = 0; i < columns; ++i) {
    ahead.fetch<Element>(Groups * kLanes);
    F32x16 key[Groups];
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) {
      key[g] = load_elements(keys + static_cast<size_t>(g) * group_stride +
                             static_cast<size_t>(i) * kLanes);
      if constexpr (sizeof(Element) == 1) key[g] = mul(key[g], scales[g]);
    }
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) {
      const F32x16 q = F32x16::broadcast(query[static_cast<size_t>(h) * query_stride + i]);
#pragma GCC unroll 4
      for (int g = 0; g < Groups; ++g) score[h][g] = fma(q, key[g], score[h][g]);
    }
  }
}

// Scores of `Heads` heads for `Groups` groups of sixteen positions.
template <KvKind Kind, int Heads, int Groups>
LANES_INLINE void score_groups(const PageHead& page, int group, const float* query, float scale,
                               PageWeights* weights, Ahead& ahead) {
  const auto head_dim = static_cast<size_t>(page.head_dim);
  const size_t group_stride = head_dim * kLanes;
  const KvElement<Kind>* keys = reinterpret_cast<const KvElement<Kind>*>(page.keys) +
                                static_cast<size_t>(group) * group_stride;
  F32x16 score[Heads][Groups];
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h) {
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) score[h][g] = F32x16::broadcast(0.0f);
  }
  F32x16 scales[Groups];
  if constexpr (Kind == KvKind::kQ8) {
    const int blocks = kv_blocks(page.head_dim);
    const BF16* scale_of = reinterpret_cast<const BF16*>(page.keys + kv_scales_at(page.head_dim));
    for (int block = 0; block < blocks; ++block) {
#pragma GCC unroll 4
      for (int g = 0; g < Groups; ++g) {
        scales[g] =
            F32x16::load(scale_of + (static_cast<size_t>(group + g) * blocks + block) * kLanes);
      }
      const int begin = block * kBlockColumns, rest = page.head_dim - begin;
      score_columns(keys + static_cast<size_t>(begin) * kLanes, group_stride,
                    rest < kBlockColumns ? rest : kBlockColumns, query + begin, head_dim, scales,
                    score, ahead);
    }
  } else {
    score_columns(keys, group_stride, page.head_dim, query, head_dim, scales, score, ahead);
  }
  const F32x16 factor = F32x16::broadcast(scale);
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h) {
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) {
      store(weights[h].probability + (group + g) * kLanes, mul(score[h][g], factor));
    }
  }
}

// Turns the scores of a page into probabilities and merges its maximum and sum into the head's
// state.
LANES_INLINE void soften(int first, int count, bool is_first_page, PageWeights& weights,
                         HeadState& state) {
  const int groups = (count + kLanes - 1) / kLanes;
  const int last = count - (groups - 1) * kLanes;  // valid lanes of the last group
  float* p = weights.probability;
  const auto masked = [&](int g, F32x16 x, float other) {
    const F32x16 others = F32x16::broadcast(other);
    const int before = first - g * kLanes;  // lanes of this group before the window
    if (before > 0) x = select_first(before < kLanes ? before : kLanes, others, x);
    return g == groups - 1 ? select_first(last, x, others) : x;
  };
  F32x16 largest = F32x16::broadcast(-__builtin_inff());
  for (int g = 0; g < groups; ++g) {
    largest = max(largest, masked(g, F32x16::load(p + g * kLanes), -__builtin_inff()));
  }
  const float maximum = max_lanes(largest);

  F32x16 sums = F32x16::broadcast(0.0f);
  for (int g = 0; g < groups; ++g) {
    const F32x16 x = sub(F32x16::load(p + g * kLanes), F32x16::broadcast(maximum));
    const F32x16 y = masked(g, exp_lanes(x), 0.0f);
    store(p + g * kLanes, y);
    sums = add(sums, y);
  }
  const float sum = sum_lanes(sums);
  if (is_first_page) {
    state = {maximum, sum};
    return;
  }
  // One of the two factors is exp(0) = 1.
  const bool is_larger = maximum > state.maximum;
  const float distance = is_larger ? state.maximum - maximum : maximum - state.maximum;
  const float smaller = first_lane(exp_lanes(F32x16::broadcast(distance)));
  weights.scale_before = is_larger ? smaller : 1.0f;
  weights.scale_page = is_larger ? 1.0f : smaller;
  state.sum = state.sum * weights.scale_before + sum * weights.scale_page;
  if (is_larger) state.maximum = maximum;
}

// The scale of a position's codes in the columns from `column` on.
LANES_INLINE F32x16 value_scale(const PageHead& page, int position, int column) {
  const auto place = static_cast<size_t>(position) * static_cast<size_t>(kv_blocks(page.head_dim)) +
                     static_cast<size_t>(column / kBlockColumns);
  const BF16* scales = reinterpret_cast<const BF16*>(page.values + kv_scales_at(page.head_dim));
  return F32x16::broadcast(to_float(scales[place]));
}

// Adds the page's weighted values to the output in columns [column, column + Width * kLanes); with
// Width 1 only the first `columns` of them exist.
template <KvKind Kind, int Heads, int Width>
LANES_INLINE void add_values(const PageHead& page, int column, int columns, bool is_first_page,
                             const PageWeights* weights, float* output, Ahead& ahead) {
  F32x16 sum[Heads][Width];
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h) {
#pragma GCC unroll 4
    for (int w = 0; w < Width; ++w) sum[h][w] = F32x16::broadcast(0.0f);
  }
  const bool is_partial = columns < Width * kLanes;
  const KvElement<Kind>* values = reinterpret_cast<const KvElement<Kind>*>(page.values) +
                                  static_cast<size_t>(page.first) * page.head_dim + column;
  for (int position = page.first; position < page.count; ++position) {
    ahead.fetch<KvElement<Kind>>(Width * kLanes);
    F32x16 value[Width];
#pragma GCC unroll 4
    for (int w = 0; w < Width; ++w) {
      value[w] = is_partial ? load_elements(values, columns) : load_elements(values + w * kLanes);
      if constexpr (Kind == KvKind::kQ8) {
        value[w] = mul(value[w], value_scale(page, position, column + w * kLanes));
      }
    }
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) {
      const F32x16 p = F32x16::broadcast(weights[h].probability[position]);
#pragma GCC unroll 4
      for (int w = 0; w < Width; ++w) sum[h][w] = fma(p, value[w], sum[h][w]);
    }
    values += page.head_dim;
  }
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h) {
    const F32x16 before = F32x16::broadcast(weights[h].scale_before);
    const F32x16 factor = F32x16::broadcast(weights[h].scale_page);
#pragma GCC unroll 4
    for (int w = 0; w < Width; ++w) {
      float* to = output + static_cast<size_t>(h) * page.value_dim + column + w * kLanes;
      if (!is_first_page) {
        const F32x16 old = is_partial ? F32x16::load_partial(to, columns) : F32x16::load(to);
        sum[h][w] = fma(old, before, mul(sum[h][w], factor));
      }
      if (is_partial) {
        store_partial(to, sum[h][w], columns);
      } else {
        store(to, sum[h][w]);
      }
    }
  }
}

// One page for `Heads` heads; its keys and values are read once. `next_keys` are those of the next
// page, or null.
template <KvKind Kind, int Heads>
void attend_page(const PageHead& page, bool is_first_page, bool is_first_read,
                 const std::byte* next_keys, const float* query, float scale, HeadState* states,
                 float* output) {
  constexpr int kWidth = tiles_of_block(Heads);
  PageWeights weights[Heads];
  const int groups = (page.count + kLanes - 1) / kLanes;
  Ahead values = {page.values, is_first_read};
  int group = 0;
  for (; group + kWidth <= groups; group += kWidth) {
    score_groups<Kind, Heads, kWidth>(page, group, query, scale, weights, values);
  }
  for (; group < groups; ++group) {
    score_groups<Kind, Heads, 1>(page, group, query, scale, weights, values);
  }

  for (int h = 0; h < Heads; ++h)
    soften(page.first, page.count, is_first_page, weights[h], states[h]);

  Ahead keys = {next_keys, is_first_read && next_keys != nullptr};
  int column = 0;
  for (; column + kWidth * kLanes <= page.value_dim; column += kWidth * kLanes) {
    add_values<Kind, Heads, kWidth>(page, column, kWidth * kLanes, is_first_page, weights, output,
                                    keys);
  }
  for (; column < page.value_dim; column += kLanes) {
    const int rest = page.value_dim - column;
    add_values<Kind, Heads, 1>(page, column, rest < kLanes ? rest : kLanes, is_first_page, weights,
                               output, keys);
  }
}

// Merges the sink's share of the softmax; returns the values' factor to the common maximum.
LANES_INLINE float merge_sink(float sink, HeadState& state) {
  const bool is_larger = sink > state.maximum;
  const float distance = is_larger ? state.maximum - sink : sink - state.maximum;
  const float smaller = first_lane(exp_lanes(F32x16::broadcast(distance)));
  const float before = is_larger ? smaller : 1.0f;
  state.sum = state.sum * before + (is_larger ? 1.0f : smaller);
  return before;
}

// At most kHeadsMax heads over all pages.
template <KvKind Kind>
void attend_heads(const AttentionArgs& args, const float* query, const float* sinks, int heads,
                  float* output) {
  const int head_dim = args.pages.head_dim;
  const size_t head_offset = static_cast<size_t>(args.kv_head) * page_head_stride(Kind, head_dim);
  HeadState states[kHeadsMax];
  const bool has_start = args.window > 0 && args.window <= args.position;
  const int first = has_start ? args.position + 1 - args.window : 0;
  const int first_page = first / kPagePositions * kPagePositions;
  const auto offset_of = [&](int position) LANES_LAMBDA {
    const auto page = static_cast<size_t>(args.page_list[position / kPagePositions]);
    return page * args.pages.page_stride + head_offset;
  };
  for (int begin = first_page; begin <= args.position; begin += kPagePositions) {
    const int rest = args.position + 1 - begin;
    const size_t offset = offset_of(begin);
    const PageHead page = {args.pages.keys + offset,
                           args.pages.values + offset,
                           head_dim,
                           args.pages.value_dim,
                           begin < first ? first - begin : 0,
                           rest < kPagePositions ? rest : kPagePositions};
    const bool is_first = begin == first_page;
    const std::byte* next_keys =
        rest > kPagePositions ? args.pages.keys + offset_of(begin + kPagePositions) : nullptr;
    int head = 0;
    while (head < heads) {
      const bool reads = head == 0;
      const float* q = query + static_cast<size_t>(head) * head_dim;
      float* out = output + static_cast<size_t>(head) * args.pages.value_dim;
      const auto attend = [&]<int Heads>(Constant<Heads>) LANES_LAMBDA {
        attend_page<Kind, Heads>(page, is_first, reads, next_keys, q, args.scale, states + head,
                                 out);
        head += Heads;
      };
      if (kChains >= 4 && heads - head >= 4) {
        attend(Constant<kChains>{});
      } else if (kChains >= 2 && heads - head >= 2) {
        attend(Constant<(kChains + 1) / 2>{});
      } else {
        attend(Constant<1>{});
      }
    }
  }
  for (int head = 0; head < heads; ++head) {
    float* out = output + static_cast<size_t>(head) * args.pages.value_dim;
    const float factor = sinks ? merge_sink(sinks[head], states[head]) : 1.0f;
    for (int i = 0; i < args.pages.value_dim; ++i) out[i] = out[i] * factor / states[head].sum;
  }
}

template <KvKind Kind>
void attend_kind(const AttentionArgs& args) {
  for (int head = 0; head < args.heads; head += kHeadsMax) {
    const int heads = args.heads - head < kHeadsMax ? args.heads - head : kHeadsMax;
    attend_heads<Kind>(args, args.query + static_cast<size_t>(head) * args.pages.head_dim,
                       args.sinks ? args.sinks + head : nullptr, heads,
                       args.output + static_cast<size_t>(head) * args.pages.value_dim);
  }
}

void attention(const AttentionArgs& args) {
  for_kind(args.pages.kind, [&]<KvKind Kind>() { attend_kind<Kind>(args); });
}
