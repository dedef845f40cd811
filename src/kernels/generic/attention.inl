// Attention over pages, and writing keys and values into them (layout: PageArgs in kernels.h).
// Sixteen positions of a page's keys are adjacent, so a score is one lane's chain over head_dim.
// Slots beyond the position are uninitialised memory: their lanes are replaced before use, and
// their values are never read.

constexpr int kGroups = kPagePositions / kLanes;
// The most query heads served by one pass over the pages, with their running state.
constexpr int kHeadsMax = 16;

void store_kv(const StoreKvArgs& args) {
  const int head_dim = args.pages.head_dim;
  const size_t head_stride = static_cast<size_t>(kPagePositions) * head_dim;
  for (int token = args.token_begin; token < args.token_end; ++token) {
    const int slot = args.slot[token];
    const size_t page = static_cast<size_t>(args.page[token]) * args.pages.page_stride;
    for (int head = 0; head < args.pages.kv_heads; ++head) {
      const float* key = args.keys + static_cast<size_t>(token) * args.keys_stride +
                         static_cast<size_t>(head) * head_dim;
      const float* value = args.values + static_cast<size_t>(token) * args.values_stride +
                           static_cast<size_t>(head) * args.pages.value_dim;
      const size_t place = page + static_cast<size_t>(head) * head_stride;
      float* keys = args.pages.keys + place +
                    static_cast<size_t>(slot / kLanes) * head_dim * kLanes + slot % kLanes;
      float* values = args.pages.values + place + static_cast<size_t>(slot) * head_dim;
      for (int i = 0; i < head_dim; ++i) {
        keys[static_cast<size_t>(i) * kLanes] = key[i];
      }
      for (int i = 0; i < args.pages.value_dim; ++i) values[i] = value[i];
    }
  }
}

struct PageHead {
  const float* keys;    // (kGroups, head_dim, kLanes)
  const float* values;  // (kPagePositions, head_dim), the first value_dim
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

// Scores of `Heads` heads for `Groups` groups of sixteen positions.
template <int Heads, int Groups>
LANES_INLINE void score_groups(const PageHead& page, int group, const float* query, float scale,
                               PageWeights* weights) {
  const size_t group_stride = static_cast<size_t>(page.head_dim) * kLanes;
  const float* keys = page.keys + static_cast<size_t>(group) * group_stride;
  F32x16 score[Heads][Groups];
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h) {
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) score[h][g] = F32x16::broadcast(0.0f);
  }
  for (int i = 0; i < page.head_dim; ++i) {
    F32x16 key[Groups];
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) {
      key[g] = F32x16::load(keys + static_cast<size_t>(g) * group_stride +
                            static_cast<size_t>(i) * kLanes);
    }
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) {
      const F32x16 q = F32x16::broadcast(query[static_cast<size_t>(h) * page.head_dim + i]);
#pragma GCC unroll 4
      for (int g = 0; g < Groups; ++g) score[h][g] = fma(q, key[g], score[h][g]);
    }
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

// Adds the page's weighted values to the output in columns [column, column + Width * kLanes); with
// Width 1 only the first `columns` of them exist.
template <int Heads, int Width>
LANES_INLINE void add_values(const PageHead& page, int column, int columns, bool is_first_page,
                             const PageWeights* weights, float* output) {
  F32x16 sum[Heads][Width];
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h) {
#pragma GCC unroll 4
    for (int w = 0; w < Width; ++w) sum[h][w] = F32x16::broadcast(0.0f);
  }
  const bool is_partial = columns < Width * kLanes;
  const float* values = page.values + static_cast<size_t>(page.first) * page.head_dim + column;
  for (int position = page.first; position < page.count; ++position) {
    F32x16 value[Width];
#pragma GCC unroll 4
    for (int w = 0; w < Width; ++w) {
      value[w] =
          is_partial ? F32x16::load_partial(values, columns) : F32x16::load(values + w * kLanes);
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

// One page for `Heads` heads; its keys and values are read once.
template <int Heads>
void attend_page(const PageHead& page, bool is_first_page, const float* query, float scale,
                 HeadState* states, float* output) {
  constexpr int kWidth = tiles_of_block(Heads);
  PageWeights weights[Heads];
  const int groups = (page.count + kLanes - 1) / kLanes;
  int group = 0;
  for (; group + kWidth <= groups; group += kWidth) {
    score_groups<Heads, kWidth>(page, group, query, scale, weights);
  }
  for (; group < groups; ++group) score_groups<Heads, 1>(page, group, query, scale, weights);

  for (int h = 0; h < Heads; ++h)
    soften(page.first, page.count, is_first_page, weights[h], states[h]);

  int column = 0;
  for (; column + kWidth * kLanes <= page.value_dim; column += kWidth * kLanes) {
    add_values<Heads, kWidth>(page, column, kWidth * kLanes, is_first_page, weights, output);
  }
  for (; column < page.value_dim; column += kLanes) {
    const int rest = page.value_dim - column;
    add_values<Heads, 1>(page, column, rest < kLanes ? rest : kLanes, is_first_page, weights,
                         output);
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
void attend_heads(const AttentionArgs& args, const float* query, const float* sinks, int heads,
                  float* output) {
  const int head_dim = args.pages.head_dim;
  const size_t head_offset =
      static_cast<size_t>(args.kv_head) * static_cast<size_t>(kPagePositions) * head_dim;
  HeadState states[kHeadsMax];
  const bool has_start = args.window > 0 && args.window <= args.position;
  const int first = has_start ? args.position + 1 - args.window : 0;
  const int first_page = first / kPagePositions * kPagePositions;
  for (int begin = first_page; begin <= args.position; begin += kPagePositions) {
    const int rest = args.position + 1 - begin;
    const size_t page_index = static_cast<size_t>(args.page_list[begin / kPagePositions]);
    const size_t offset = page_index * args.pages.page_stride + head_offset;
    const PageHead page = {args.pages.keys + offset,
                           args.pages.values + offset,
                           head_dim,
                           args.pages.value_dim,
                           begin < first ? first - begin : 0,
                           rest < kPagePositions ? rest : kPagePositions};
    const bool is_first = begin == first_page;
    for (int head = 0; head < heads;) {
      const float* q = query + static_cast<size_t>(head) * head_dim;
      float* out = output + static_cast<size_t>(head) * args.pages.value_dim;
      if (heads - head >= 4) {
        attend_page<4>(page, is_first, q, args.scale, states + head, out);
        head += 4;
      } else if (heads - head >= 2) {
        attend_page<2>(page, is_first, q, args.scale, states + head, out);
        head += 2;
      } else {
        attend_page<1>(page, is_first, q, args.scale, states + head, out);
        head += 1;
      }
    }
  }
  for (int head = 0; head < heads; ++head) {
    float* out = output + static_cast<size_t>(head) * args.pages.value_dim;
    const float factor = sinks ? merge_sink(sinks[head], states[head]) : 1.0f;
    for (int i = 0; i < args.pages.value_dim; ++i) out[i] = out[i] * factor / states[head].sum;
  }
}

void attention(const AttentionArgs& args) {
  for (int head = 0; head < args.heads; head += kHeadsMax) {
    const int heads = args.heads - head < kHeadsMax ? args.heads - head : kHeadsMax;
    attend_heads(args, args.query + static_cast<size_t>(head) * args.pages.head_dim,
                 args.sinks ? args.sinks + head : nullptr, heads,
                 args.output + static_cast<size_t>(head) * args.pages.value_dim);
  }
}
