// Attention over chosen positions, and the scores by which they are chosen.
// A chosen position's key is read from its row among the values (StoreKvArgs with whole keys as
// values), or among rows of keys: the groups of sixteen keys would be read whole for one of them.
// So here a lane is a query head, and each score is the same chain as in attention.inl.

// Rows of whole pages whose scores are computed before their values are added.
constexpr int kRowsMax = kPagePositions;

struct ChosenRow {
  const std::byte* keys;  // of its page and head
  const std::byte* values;
  int slot;
  int lane;  // of the sum of its page's probabilities
};

// The softmax of sixteen heads so far.
struct HeadLanes {
  F32x16 maximum;
  F32x16 sum;
};

// A page's effect on sixteen heads, as PageWeights has it for one: a row's probabilities are
// sixteen neighbours.
struct LaneWeights {
  float probability[kRowsMax * kLanes];
  float scale_before[kLanes] = {};
  float scale_page[kLanes] = {};
};

// Sixteen columns of a row of some page and head, of which `count` exist.
template <KvKind Kind>
LANES_INLINE F32x16 load_row(const std::byte* head, int slot, int head_dim, int column, int count) {
  const auto row = static_cast<size_t>(slot);
  const KvElement<Kind>* elements =
      reinterpret_cast<const KvElement<Kind>*>(head) + row * static_cast<size_t>(head_dim) + column;
  F32x16 x = count < kLanes ? load_elements(elements, count) : load_elements(elements);
  if constexpr (Kind == KvKind::kQ8) {
    const BF16* scales = reinterpret_cast<const BF16*>(head + kv_scales_at(head_dim));
    const size_t block = row * static_cast<size_t>(kv_blocks(head_dim)) +
                         static_cast<size_t>(column / kBlockColumns);
    x = mul(x, F32x16::broadcast(to_float(scales[block])));
  }
  return x;
}

// The scores of `Rows` rows for sixteen heads, whose queries are side by side: (head_dim, kLanes).
template <KvKind Kind, int Rows>
LANES_INLINE void score_rows(const ChosenRow* rows, int head_dim, const float* queries, float scale,
                             float* scores) {
  F32x16 score[Rows];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) score[r] = F32x16::broadcast(0.0f);
  for (int begin = 0; begin < head_dim; begin += kLanes) {
    const int count = head_dim - begin < kLanes ? head_dim - begin : kLanes;
    float keys[Rows][kLanes];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      store(keys[r], load_row<Kind>(rows[r].keys, rows[r].slot, head_dim, begin, count));
    }
    for (int i = 0; i < count; ++i) {
      const F32x16 q = F32x16::load(queries + static_cast<size_t>(begin + i) * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) score[r] = fma(q, F32x16::broadcast(keys[r][i]), score[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    store(scores + r * kLanes, mul(score[r], F32x16::broadcast(scale)));
  }
}

// Turns the scores of a page's rows into probabilities, and merges its maximum and sum; as soften()
// does for one head.
LANES_INLINE void soften_rows(const ChosenRow* rows, int count, bool is_first_page,
                              LaneWeights& weights, HeadLanes& state) {
  float* p = weights.probability;
  F32x16 maximum = F32x16::load(p);
  for (int r = 1; r < count; ++r) maximum = max(maximum, F32x16::load(p + r * kLanes));
  // The tree of sixteen sums over every sixteenth position.
  F32x16 sums[kLanes];
  for (int i = 0; i < kLanes; ++i) sums[i] = F32x16::broadcast(0.0f);
  for (int r = 0; r < count; ++r) {
    const F32x16 e = exp_lanes(sub(F32x16::load(p + r * kLanes), maximum));
    store(p + r * kLanes, e);
    F32x16& sum = sums[rows[r].lane];
    sum = add(sum, e);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] = add(sums[i], sums[i + half]);
  }
  if (is_first_page) {
    state = {maximum, sums[0]};
    return;
  }
  const F32x16 one = F32x16::broadcast(1.0f), before = state.maximum;
  const F32x16 distance = select_less(before, maximum, sub(before, maximum), sub(maximum, before));
  const F32x16 smaller = exp_lanes(distance);
  const F32x16 scale_before = select_less(before, maximum, smaller, one);
  const F32x16 scale_page = select_less(before, maximum, one, smaller);
  store(weights.scale_before, scale_before);
  store(weights.scale_page, scale_page);
  state.sum = add(mul(state.sum, scale_before), mul(sums[0], scale_page));
  state.maximum = select_less(before, maximum, maximum, before);
}

// Adds the weighted values of a page's rows to the outputs of heads [head, head + Heads) in sixteen
// columns, of which `columns` exist.
template <KvKind Kind, int Heads>
LANES_INLINE void add_rows(const ChosenRow* rows, int count, int head_dim, int value_dim, int head,
                           int column, int columns, bool is_first_page, const LaneWeights& weights,
                           float* output) {
  F32x16 sum[Heads];
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h) sum[h] = F32x16::broadcast(0.0f);
  for (int r = 0; r < count; ++r) {
    const F32x16 value = load_row<Kind>(rows[r].values, rows[r].slot, head_dim, column, columns);
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) {
      sum[h] = fma(F32x16::broadcast(weights.probability[r * kLanes + head + h]), value, sum[h]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h) {
    float* to = output + static_cast<size_t>(head + h) * value_dim + column;
    if (!is_first_page) {
      const F32x16 old = columns < kLanes ? F32x16::load_partial(to, columns) : F32x16::load(to);
      sum[h] = fma(old, F32x16::broadcast(weights.scale_before[head + h]),
                   mul(sum[h], F32x16::broadcast(weights.scale_page[head + h])));
    }
    if (columns < kLanes) {
      store_partial(to, sum[h], columns);
    } else {
      store(to, sum[h]);
    }
  }
}

template <KvKind Kind>
void add_page(const ChosenRow* rows, int count, const PageArgs& pages, int heads,
              bool is_first_page, const LaneWeights& weights, float* output) {
  for (int column = 0; column < pages.value_dim; column += kLanes) {
    const int rest = pages.value_dim - column, columns = rest < kLanes ? rest : kLanes;
    int head = 0;
    for (; head + kChains <= heads; head += kChains) {
      add_rows<Kind, kChains>(rows, count, pages.head_dim, pages.value_dim, head, column, columns,
                              is_first_page, weights, output);
    }
    for (; head < heads; ++head) {
      add_rows<Kind, 1>(rows, count, pages.head_dim, pages.value_dim, head, column, columns,
                        is_first_page, weights, output);
    }
  }
}

// The queries of at most sixteen heads side by side, zero in the lanes that are left.
LANES_INLINE void turn_queries(const float* query, int heads, int head_dim, float* turned) {
  for (int i = 0; i < head_dim; ++i) {
    for (int h = 0; h < kLanes; ++h) {
      turned[i * kLanes + h] = h < heads ? query[static_cast<size_t>(h) * head_dim + i] : 0.0f;
    }
  }
}

// Whole pages from `page` on, as many as fit: their chosen rows, and the page after them.
struct ChosenRows {
  ChosenRow rows[kRowsMax];
  int count;
  int next_page;
};
// The token's positions of a page, a bit for each: the chosen ones, or all.
LANES_INLINE uint64_t positions_of(const AttentionArgs& args, int page) {
  if (args.chosen != nullptr) {
    return uint64_t{args.chosen[2 * page + 1]} << 32 | args.chosen[2 * page];
  }
  const int rest = args.position - page * kPagePositions + 1;
  return rest < kPagePositions ? (uint64_t{1} << rest) - 1 : ~uint64_t{0};
}
LANES_INLINE void take_rows(const AttentionArgs& args, int page, ChosenRows& taken) {
  const size_t head_offset =
      static_cast<size_t>(args.kv_head) * page_head_stride(args.pages.kind, args.pages.head_dim);
  const std::byte* all_keys = args.keys_are_rows ? args.pages.keys : args.pages.values;
  taken.count = 0;
  for (; page <= args.position / kPagePositions; ++page) {
    uint64_t mask = positions_of(args, page);
    if (taken.count + __builtin_popcountll(mask) > kRowsMax) break;
    const size_t at =
        head_offset + static_cast<size_t>(args.page_list[page]) * args.pages.page_stride;
    for (; mask != 0; mask &= mask - 1) {
      const int slot = __builtin_ctzll(mask);
      taken.rows[taken.count++] = {all_keys + at, args.pages.values + at, slot, slot % kLanes};
    }
  }
  taken.next_page = page;
}

// The scores of rows for sixteen heads: (count, kLanes).
template <KvKind Kind>
LANES_INLINE void score_all(const ChosenRow* rows, int count, int head_dim, const float* queries,
                            float scale, float* scores) {
  int row = 0;
  for (; row + kChains <= count; row += kChains) {
    score_rows<Kind, kChains>(rows + row, head_dim, queries, scale, scores + row * kLanes);
  }
  for (; row < count; ++row) {
    score_rows<Kind, 1>(rows + row, head_dim, queries, scale, scores + row * kLanes);
  }
}

// Adds a page's rows, whose scores are given, to the outputs so far.
template <KvKind Kind>
LANES_INLINE void merge_rows(const ChosenRow* rows, int count, const float* scores,
                             const PageArgs& pages, int heads, bool is_first, HeadLanes& state,
                             float* output) {
  LaneWeights weights;
  __builtin_memcpy(weights.probability, scores,
                   static_cast<size_t>(count) * kLanes * sizeof(float));
  soften_rows(rows, count, is_first, weights, state);
  add_page<Kind>(rows, count, pages, heads, is_first, weights, output);
}

// Merges the sinks, and divides by the sums.
LANES_INLINE void end_heads(const HeadLanes& state, const float* sinks, int heads, int value_dim,
                            float* output) {
  float maxima[kLanes], sums[kLanes];
  store(maxima, state.maximum);
  store(sums, state.sum);
  for (int head = 0; head < heads; ++head) {
    HeadState of = {maxima[head], sums[head]};
    float* out = output + static_cast<size_t>(head) * value_dim;
    const float factor = sinks ? merge_sink(sinks[head], of) : 1.0f;
    for (int i = 0; i < value_dim; ++i) out[i] = out[i] * factor / of.sum;
  }
}

// At most sixteen heads over the chosen positions, or over all.
template <KvKind Kind>
void attend_chosen_heads(const AttentionArgs& args, const float* query, const float* sinks,
                         int heads, float* output) {
  const PageArgs& pages = args.pages;
  float queries[kChosenKeyMax * kLanes];
  turn_queries(query, heads, pages.head_dim, queries);
  HeadLanes state = {F32x16::broadcast(0.0f), F32x16::broadcast(0.0f)};
  bool is_first = true;
  ChosenRows taken;
  for (int page = 0; page <= args.position / kPagePositions; page = taken.next_page) {
    take_rows(args, page, taken);
    float scores[kRowsMax * kLanes];
    score_all<Kind>(taken.rows, taken.count, pages.head_dim, queries, args.scale, scores);
    for (int begin = 0, end = 0; begin < taken.count; begin = end) {
      const ChosenRow* rows = taken.rows + begin;
      ++end;
      while (end < taken.count && taken.rows[end].values == rows->values) ++end;
      merge_rows<Kind>(rows, end - begin, scores + begin * kLanes, pages, heads, is_first, state,
                       output);
      is_first = false;
    }
  }
  end_heads(state, sinks, heads, pages.value_dim, output);
}

template <KvKind Kind>
void attend_chosen_kind(const AttentionArgs& args) {
  for (int head = 0; head < args.heads; head += kLanes) {
    const int heads = args.heads - head < kLanes ? args.heads - head : kLanes;
    attend_chosen_heads<Kind>(args, args.query + static_cast<size_t>(head) * args.pages.head_dim,
                              args.sinks ? args.sinks + head : nullptr, heads,
                              args.output + static_cast<size_t>(head) * args.pages.value_dim);
  }
}

void attention_chosen(const AttentionArgs& args) {
  for_kind(args.pages.kind, [&]<KvKind Kind>() { attend_chosen_kind<Kind>(args); });
}

// A stored element of a position's key.
template <KvKind Kind>
LANES_INLINE float stored_key(const std::byte* head, int head_dim, int slot, int column) {
  const KvPlace<Kind> place = place_of_key<Kind>(const_cast<std::byte*>(head), head_dim, slot);
  const size_t at = static_cast<size_t>(column) * place.stride;
  if constexpr (Kind == KvKind::kF32) return place.elements[at];
  if constexpr (Kind == KvKind::kQ8) {
    const size_t block = static_cast<size_t>(column / kBlockColumns) * place.stride;
    return static_cast<float>(place.elements[at]) * to_float(place.scales[block]);
  }
  if constexpr (Kind == KvKind::kBF16 || Kind == KvKind::kF16) return to_float(place.elements[at]);
}

template <KvKind Kind>
void pool_key_kind(const PoolKeyArgs& args) {
  const int head_dim = args.inputs.head_dim;
  const auto page = static_cast<size_t>(args.page);
  const std::byte* head = args.inputs.keys + page * args.inputs.page_stride;
  const KvPlace<KvKind::kF32> to = place_of_key<KvKind::kF32>(
      args.pools.keys + page * args.pools.page_stride, args.columns, args.slot);
  for (int begin = 0; begin < args.columns; begin += kLanes) {
    const int count = args.columns - begin < kLanes ? args.columns - begin : kLanes;
    F32x16 keys[kPagePositions], gates[kPagePositions], most = F32x16::broadcast(0.0f);
    for (int m = 0; m < args.pool; ++m) {
      const int slot = args.slot * args.pool + m;
      float key[kLanes] = {}, gate[kLanes] = {};
      for (int i = 0; i < count; ++i) {
        key[i] = stored_key<Kind>(head, head_dim, slot, begin + i);
        gate[i] = stored_key<Kind>(head, head_dim, slot, args.columns + begin + i);
      }
      keys[m] = F32x16::load(key);
      const F32x16 bias = load_lanes(args.bias + m * args.columns + begin, count);
      gates[m] = add(F32x16::load(gate), bias);
      most = m == 0 ? gates[0] : max(most, gates[m]);
    }
    F32x16 sum = F32x16::broadcast(0.0f), mean = sum;
    for (int m = 0; m < args.pool; ++m) {
      const F32x16 e = exp_lanes(sub(gates[m], most));
      sum = add(sum, e);
      mean = fma(e, keys[m], mean);
    }
    float pooled[kLanes];
    store(pooled, div(mean, sum));
    for (int i = 0; i < count; ++i) {
      to.elements[static_cast<size_t>(begin + i) * to.stride] = pooled[i];
    }
  }
}

void pool_key(const PoolKeyArgs& args) {
  for_kind(args.inputs.kind, [&]<KvKind Kind>() { pool_key_kind<Kind>(args); });
}

// Adds `Heads` heads of the index to the scores of a page's `groups` groups of sixteen keys.
template <KvKind Kind, int Heads>
LANES_INLINE void add_index_heads(const PageHead& page, int groups, const float* query,
                                  const float* weights, F32x16 (&scores)[kPagePositions / kLanes]) {
  constexpr int kWidth = tiles_of_block(Heads);
  PageWeights products[Heads];
  Ahead none = {nullptr, false};
  int group = 0;
  for (; group + kWidth <= groups; group += kWidth) {
    score_groups<Kind, Heads, kWidth>(page, group, query, 1.0f, products, none);
  }
  for (; group < groups; ++group) {
    score_groups<Kind, Heads, 1>(page, group, query, 1.0f, products, none);
  }
  for (int h = 0; h < Heads; ++h) {
    const F32x16 weight = F32x16::broadcast(weights[h]), zero = F32x16::broadcast(0.0f);
    for (int g = 0; g < groups; ++g) {
      const F32x16 product = F32x16::load(products[h].probability + g * kLanes);
      scores[g] = fma(weight, max(product, zero), scores[g]);
    }
  }
}

template <KvKind Kind>
void score_index_kind(const IndexScoresArgs& args) {
  const int head_dim = args.pages.head_dim, keys = args.page_keys;
  const int groups = (keys + kLanes - 1) / kLanes;
  for (int index = args.page_begin; index < args.page_end; ++index) {
    const auto at = static_cast<size_t>(args.page_list[index]) * args.pages.page_stride;
    const PageHead page = {args.pages.keys + at, nullptr, head_dim, 0, 0, kPagePositions};
    F32x16 scores[kPagePositions / kLanes];
    for (int g = 0; g < groups; ++g) scores[g] = F32x16::broadcast(0.0f);
    int head = 0;
    for (; head + kChains <= args.heads; head += kChains) {
      add_index_heads<Kind, kChains>(page, groups,
                                     args.query + static_cast<size_t>(head) * head_dim,
                                     args.weights + head, scores);
    }
    for (; head < args.heads; ++head) {
      add_index_heads<Kind, 1>(page, groups, args.query + static_cast<size_t>(head) * head_dim,
                               args.weights + head, scores);
    }
    float* to = args.scores + static_cast<size_t>(index) * static_cast<size_t>(keys);
    for (int g = 0; g < groups; ++g) store_lanes(to + g * kLanes, scores[g], keys - g * kLanes);
  }
}

void index_scores(const IndexScoresArgs& args) {
  for_kind(args.pages.kind, [&]<KvKind Kind>() { score_index_kind<Kind>(args); });
}
