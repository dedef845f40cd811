// Compressed attention: over entries that stand for several positions, and over a window; and the
// entries themselves. Rows, scores and sums are those of attention over chosen positions.

// The rows of 64 neighbouring entries from number 64 * block on, of which those before `count`
// exist; the chosen ones, if there is a choice.
LANES_INLINE int take_entries(const CompressedAttentionArgs& args, int block, int count,
                              ChosenRow* rows) {
  const int first = block * kRowsMax, rest = count - first;
  uint64_t mask = ~uint64_t{0};
  if (args.chosen != nullptr) {
    mask = uint64_t{args.chosen[2 * block + 1]} << 32 | args.chosen[2 * block];
  }
  if (rest < kRowsMax) mask &= (uint64_t{1} << rest) - 1;
  const int slots = args.pool < kPagePositions ? kPagePositions / args.pool : 1;
  int taken = 0;
  for (; mask != 0; mask &= mask - 1) {
    const int entry = first + __builtin_ctzll(mask);
    const int page = ((entry + 1) * args.pool - 1) / kPagePositions;
    const auto at = static_cast<size_t>(args.entry_list[page]) * args.entries.page_stride;
    const std::byte* values = args.entries.values + at;
    rows[taken++] = {values, values, entry % slots, entry % kLanes};
  }
  return taken;
}

// The rows of positions from `begin` on, up to the last one of its page or the token's.
LANES_INLINE int take_window(const CompressedAttentionArgs& args, int begin, ChosenRow* rows) {
  const int page = begin / kPagePositions;
  const auto at = static_cast<size_t>(args.page_list[page]) * args.rows.page_stride;
  const std::byte* values = args.rows.values + at;
  int taken = 0, slot = begin % kPagePositions;
  do {
    rows[taken++] = {values, values, slot, slot % kLanes};
    ++slot;
  } while (slot < kPagePositions && page * kPagePositions + slot <= args.position);
  return taken;
}

// At most sixteen heads.
template <KvKind Kind>
void attend_compressed_heads(const CompressedAttentionArgs& args, const float* query,
                             const float* sinks, int heads, float* output) {
  const int head_dim = args.rows.head_dim;
  float queries[kChosenKeyMax * kLanes], scores[kRowsMax * kLanes];
  turn_queries(query, heads, head_dim, queries);
  HeadLanes state = {F32x16::broadcast(0.0f), F32x16::broadcast(0.0f)};
  bool is_first = true;
  ChosenRow rows[kRowsMax];
  const int count = args.pool > 0 ? (args.position + 1) / args.pool : 0;
  for (int block = 0; block * kRowsMax < count; ++block) {
    const int taken = take_entries(args, block, count, rows);
    if (taken == 0) continue;
    score_all<KvKind::kF32>(rows, taken, head_dim, queries, args.scale, scores);
    merge_rows<KvKind::kF32>(rows, taken, scores, args.entries, heads, is_first, state, output);
    is_first = false;
  }
  const int first = args.position + 1 < args.window ? 0 : args.position + 1 - args.window;
  for (int begin = first; begin <= args.position;) {
    const int taken = take_window(args, begin, rows);
    score_all<Kind>(rows, taken, head_dim, queries, args.scale, scores);
    merge_rows<Kind>(rows, taken, scores, args.rows, heads, is_first, state, output);
    is_first = false;
    begin += taken;
  }
  end_heads(state, sinks, heads, head_dim, output);
}

template <KvKind Kind>
void attend_compressed_kind(const CompressedAttentionArgs& args) {
  const auto head_dim = static_cast<size_t>(args.rows.head_dim);
  for (int head = 0; head < args.heads; head += kLanes) {
    const int heads = args.heads - head < kLanes ? args.heads - head : kLanes;
    const size_t at = static_cast<size_t>(head) * head_dim;
    attend_compressed_heads<Kind>(args, args.query + at, args.sinks ? args.sinks + head : nullptr,
                                  heads, args.output + at);
  }
}

void compressed_attention(const CompressedAttentionArgs& args) {
  for_kind(args.rows.kind, [&]<KvKind Kind>() { attend_compressed_kind<Kind>(args); });
}

// A stored position.
struct StoredRow {
  const std::byte* head;
  int slot;
};

// `count` columns of a row from any column on, zero in the other lanes.
template <KvKind Kind>
LANES_INLINE F32x16 load_columns(StoredRow row, int head_dim, int column, int count) {
  if constexpr (Kind == KvKind::kQ8) {
    if (column % kBlockColumns + count > kBlockColumns) {  // columns with two scales
      const int before = kBlockColumns - column % kBlockColumns;
      float columns[2 * kLanes] = {};
      store(columns, load_row<Kind>(row.head, row.slot, head_dim, column, before));
      store(columns + before,
            load_row<Kind>(row.head, row.slot, head_dim, column + before, count - before));
      return F32x16::load(columns);
    }
  }
  return load_row<Kind>(row.head, row.slot, head_dim, column, count);
}

// The members of an entry, whose columns are those of their own pool or of the next one.
template <KvKind Kind>
struct EntryMembers {
  const CompressArgs& args;
  int count;  // columns of the lanes
  int column;

  int width() const { return args.overlaps ? 2 * args.columns : args.columns; }
  int begin() const {
    const bool has_before = args.overlaps && args.last + 1 >= 2 * args.pool;
    return args.last + 1 - (has_before ? 2 : 1) * args.pool;
  }
  // Where the columns begin for a position's part in this entry.
  int first(int position) const {
    const bool is_own = args.overlaps && position > args.last - args.pool;
    return column + (is_own ? args.columns : 0);
  }
  StoredRow row(int position) const {
    const int page = args.page_list[position / kPagePositions];
    const std::byte* values =
        args.inputs.values + static_cast<size_t>(page) * args.inputs.page_stride;
    return {values, position % kPagePositions};
  }
  LANES_INLINE F32x16 value(int position) const {
    return load_columns<Kind>(row(position), args.inputs.head_dim, first(position), count);
  }
  LANES_INLINE F32x16 gate(int position) const {
    const F32x16 gate =
        load_columns<Kind>(row(position), args.inputs.head_dim, width() + first(position), count);
    const int place = position % args.pool;
    return add(gate, load_lanes(args.bias + place * width() + first(position), count));
  }
};

template <KvKind Kind>
LANES_INLINE F32x16 weighted_mean(const EntryMembers<Kind>& members) {
  const int begin = members.begin(), last = members.args.last;
  F32x16 most = members.gate(begin);
  for (int position = begin + 1; position <= last; ++position) {
    most = max(most, members.gate(position));
  }
  F32x16 sum = F32x16::broadcast(0.0f), mean = sum;
  for (int position = begin; position <= last; ++position) {
    const F32x16 e = exp_lanes(sub(members.gate(position), most));
    sum = add(sum, e);
    mean = fma(e, members.value(position), mean);
  }
  return div(mean, sum);
}

template <KvKind Kind>
LANES_INLINE F32x16 plain_mean(const EntryMembers<Kind>& members) {
  F32x16 sum = members.value(members.begin());
  for (int position = members.begin() + 1; position <= members.args.last; ++position) {
    sum = add(sum, members.value(position));
  }
  return div(sum, F32x16::broadcast(static_cast<float>(members.args.pool)));
}

template <KvKind Kind>
void compress_kind(const CompressArgs& args) {
  for (int column = args.column_begin; column < args.column_end; column += kLanes) {
    const int rest = args.column_end - column, count = rest < kLanes ? rest : kLanes;
    const EntryMembers<Kind> members = {args, count, column};
    const F32x16 entry = args.bias != nullptr ? weighted_mean(members) : plain_mean(members);
    store_lanes(args.output + column, entry, count);
  }
}

void compress(const CompressArgs& args) {
  for_kind(args.inputs.kind, [&]<KvKind Kind>() { compress_kind<Kind>(args); });
}
