// The position of a kernel in one part of a product, and what it fetches ahead of its use.

// The position in a quantised part: the same for all tiles of a group.
struct BlockPlace {
  int32_t piece;
  int32_t block;
  size_t scales;  // bytes after the beginning of the group's scales
};

// The group that has a tile of a quantised matrix.
struct GroupPlace {
  const std::byte* begin;
  int32_t tiles;
  int32_t tile;  // the tile's number in the group

  LANES_INLINE static GroupPlace of(const PackedMatrix& matrix, int tile) {
    const TileGroup group = group_of(matrix.rows, tile);
    return {matrix.tiles + static_cast<size_t>(group.first) * matrix.tile_bytes, group.tiles,
            tile - group.first};
  }
};

// A block of tokens of a call, with which its tiles are multiplied one block after the other.
struct TokenBlock {
  int32_t first;  // token
  int32_t index;
  int32_t count;  // of the call's blocks
};

// Memory that is fetched while a thread computes with something else, some lines at each block.
struct NextGroup {
  const std::byte* at = nullptr;
  const std::byte* end = nullptr;
  size_t step = 0;

  LANES_INLINE void fetch() {
    if (at >= end) return;
    fetch_lines<kSecondLevel>(at, step);
    at += step;
  }
};

// The position in a part.
struct PartCursor {
  const MatmulPart* part;
  GroupPlace group;        // for blocks, of the first tile of this call
  const std::byte* tiles;  // by column: the first tile of this call
  const std::byte* input;  // of the first token of this call
  int32_t tokens;          // of this call, for add_leaf
  const std::byte* next;   // for blocks: the group that is read after this one
  bool fetches_own;        // nobody has fetched this group yet
  int32_t column;          // by column
  BlockPlace place;        // for blocks
  NextGroup ahead;         // for blocks
  // Adds one leaf of the part to sums[tile][token] of `tiles` tiles.
  void (*add_leaf)(PartCursor&, const LeafStep&, int tiles, F32x16* sums);
};

LANES_INLINE PartCursor cursor_of(const MatmulPart& part, int tile, int token) {
  const PackedMatrix& matrix = *part.matrix;
  const GroupPlace group = GroupPlace::of(matrix, tile);
  return {.part = &part,
          .group = group,
          .tiles = matrix.tiles + static_cast<size_t>(tile) * matrix.tile_bytes,
          .input = static_cast<const std::byte*>(part.input) +
                   static_cast<size_t>(token) * part.input_stride,
          .next = group.begin + static_cast<size_t>(group.tiles) * matrix.tile_bytes,
          .fetches_own = true};
}

// A cursor for one token, for which part after part goes through a group.
LANES_INLINE PartCursor cursor_of_one(const MatmulArgs& args, int part, int tile, int token) {
  PartCursor cursor = cursor_of(args.parts[part], tile, token);
  const TileGroup group = group_of(cursor.part->matrix->rows, tile);
  const int end = group.first + group.tiles;
  if (part + 1 < args.part_count) {
    cursor.next = GroupPlace::of(*args.parts[part + 1].matrix, tile).begin;
  } else if (end < args.tile_end) {
    cursor.next = GroupPlace::of(*args.parts[0].matrix, end).begin;
  } else if (args.next != nullptr) {
    cursor.next = args.next;
  }
  return cursor;
}

// With several tokens, a group's memory is fetched while the group before it is multiplied: an
// equal share with each Tiles tiles and block of tokens, and in it a step for each block and sweep.
// The first group of a call fetches its own.
template <int Tiles>
LANES_INLINE void share_fetching(PartCursor& cursor, const MatmulArgs& args, int tile,
                                 TokenBlock tokens, int sweeps) {
  const PackedMatrix& matrix = *cursor.part->matrix;
  const TileGroup group = group_of(matrix.rows, tile);
  cursor.fetches_own = group.first <= args.tile_begin && tokens.index == 0;
  const int next = group.first + group.tiles;
  if (next >= args.tile_end || is_by_column(matrix.codes)) return;
  const auto lines =
      static_cast<size_t>(group_of(matrix.rows, next).tiles) * matrix.tile_bytes / 64;
  const int before = (tile - group.first) / Tiles, all = (group.tiles + Tiles - 1) / Tiles;
  const auto index = static_cast<size_t>(before * tokens.count + tokens.index);
  const auto count = static_cast<size_t>(all * tokens.count);
  const size_t begin = lines * index / count, end = lines * (index + 1) / count;
  const auto steps = static_cast<size_t>(matrix.block_count * sweeps);
  const std::byte* const from = matrix.tiles + static_cast<size_t>(next) * matrix.tile_bytes;
  cursor.ahead = {from + begin * 64, from + end * 64, (end - begin + steps - 1) / steps * 64};
}

// How many bytes before their use weights are fetched into the second and the first level of the
// caches. One step into the first level leaves half of the read bandwidth of Zen 4 unused; its
// buffers for misses are few (measured with bench/kernels_bench.cc).
struct FetchDistance {
  size_t far;
  size_t near;  // 0: the processor's own fetching is enough
};
constexpr FetchDistance kDistanceOfScales = {3072, 1024};
// Whole bytes need so little work that a second fetch of each line costs more than it gains.
template <PackedCodes kCodes>
constexpr FetchDistance distance_of_codes() {
  const bool is_byte = code_bits(kCodes) == 8 && kCodes != PackedCodes::kFp8;
  return {16384, is_byte ? size_t{0} : 2048};
}

// Fetches the codes of a group, or its scales, ahead of their use: at their end, those of the group
// that is read next.
struct Prefetch {
  const std::byte* end;
  const std::byte* next;

  LANES_INLINE void fetch(const std::byte* at, size_t bytes, FetchDistance distance) const {
    fetch_lines<kSecondLevel>(ahead(at, distance.far), bytes);
    if (distance.near != 0) fetch_lines<kFirstLevel>(ahead(at, distance.near), bytes);
  }
  LANES_INLINE const std::byte* ahead(const std::byte* at, size_t distance) const {
    const std::byte* to = at + distance;
    return to < end ? to : next + (to - end);
  }
};
