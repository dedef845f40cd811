// Planner: what a GPU does for queued operations, as a list of dispatches of the kernels in
// device/shaders. It touches no device: addresses come from a PlanMemory. Used by
// device/vulkan/vulkan_device.h; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "device/gpu/hazards.h"
#include "device/operations.h"
#include "device/packing/column_layouts.h"
#include "device/shaders/params.h"
#include "kernels/packed_matrix.h"

namespace lockstep::gpu {

enum class Kernel : uint8_t {
  kEmbed,
  kPrepare,
  kMatmul,
  kMatmulEnded,
  kNorm,
  kHeadSquares,
  kNormHeads,
  kRope,
  kRotate,
  kStoreKv,
  kAttention,
  kAttentionMerge,
  kActivate,
  kRoute,
  kElementwise,
  kHeads,
  kLatent,
  kAbsorb,
  kProbe,
  kConvolve,
  kDelta,
  kLayerNorm,
  kIndexScores,
  kChoosePositions,
  kAttentionChosen,
  kPoolKey,
  kStreamGates,
  kStreams,
  kCompress,
  kAttentionCompressed,
  kMatchStreams,
};

// "matmul"
std::string_view kernel_name(Kernel kernel);

// Among the constants of a kernel: it reads the format from each matrix (matrix.glsl).
inline constexpr uint32_t kAnyFormat = 255;

// A kernel with its specialization constants 10 to 17.
struct KernelVariant {
  Kernel kernel{};
  std::array<uint32_t, 8> constants{};

  friend bool operator==(const KernelVariant&, const KernelVariant&) = default;
};

inline constexpr size_t kParamBytesMax = 448;
// A long prompt is multiplied in rounds of at most this many tokens, which bounds scratch memory.
inline constexpr size_t kTokensOfRound = 256;

struct Dispatch {
  KernelVariant variant;
  std::array<uint32_t, 2> groups{};  // workgroups in x and y
  bool waits = false;                // for all dispatches before it
  uint64_t bytes = 0;                // read and written, besides ranges that are used in part
  uint32_t param_bytes = 0;
  alignas(8) std::array<std::byte, kParamBytesMax> params{};
};

// A packed matrix, as a plan needs it.
struct PlanMatrix {
  Address info = 0;  // of its MatrixInfo
  PackedCodes codes{};
  PackedScales scales{};
  uint32_t input = kPlainInput;
  int rows = 0;
  int columns = 0;
  int blocks = 0;
  int subtrees = 0;
  int layout = 0;    // equal for matrices whose columns are cut alike
  size_t bytes = 0;  // of its tiles

  bool is_empty() const { return rows == 0 || subtrees == 0; }
  // No block is shorter than the others.
  bool has_whole_blocks() const { return blocks * static_cast<int>(kColumnsOfBlock) == columns; }
  size_t tiles() const { return static_cast<size_t>(tile_count(rows)); }
  // Words of one row of input in the form that it takes; 0 if that needs no preparation.
  size_t prepared_words() const;
  bool shares_input_with(const PlanMatrix& other) const {
    return input == other.input && layout == other.layout;
  }
};

// `info`: the address of its MatrixInfo; `bytes`: of its tiles.
PlanMatrix plan_matrix(const PackedMatrix& packed, const ColumnLayout& layout, Address info,
                       size_t bytes);

class PlanMemory {
 public:
  virtual ~PlanMemory() = default;

  // The address of `elements` elements of four bytes, which are inside their buffer.
  virtual MemoryRange place(Slice slice, size_t elements) const = 0;
  virtual size_t bytes_of(BufferId buffer) const = 0;
  // From a slice's place to the end of its buffer.
  MemoryRange whole(Slice slice) const {
    return place(slice, bytes_of(slice.buffer) / Slice::kElementBytes - slice.offset);
  }
  virtual const PlanMatrix& matrix(MatrixId id) const = 0;
  // A table of the addresses of these matrices' MatrixInfos.
  virtual Address table(const std::vector<MatrixId>& matrices) = 0;
  // For prepared activations; half of it is enough for one token of every operation.
  virtual MemoryRange scratch() const = 0;
};

// The fate of a product's sums, and the form of blocks that are made of them.
struct Ending {
  uint32_t end = kEndsStored;
  uint32_t form = kPlainInput;
};
// A variant of kMatmul that ends with what follows it.
constexpr KernelVariant ended(KernelVariant variant, const Ending& ending) {
  const uint32_t tiles = ending.end == kEndsPrepared ? kTilesOfBlock : 2 * kTilesOfBlock;
  variant.kernel = Kernel::kMatmulEnded;
  variant.constants[5] = ending.end;
  variant.constants[6] = ending.form;
  variant.constants[7] = kLanesOfMatmul * kTileRows * tiles;
  return variant;
}

// At most, of a product that ends with what follows it.
inline constexpr uint32_t kInvocationsOfEnds = kLanesOfMatmul * kTileRows * 2 * kTilesOfBlock;
inline constexpr uint32_t kSharedBytesOfEnds = 24 << 10;

struct PlanOptions {
  bool specialises = true;           // pipelines are made for one format each, which is faster
  uint32_t attention_pages_max = 0;  // of a dispatch; 0: any number
  uint32_t split_pages_least = 8;    // from here on a row's pages are shared among workgroups
  // Products end with what follows them (kEndsActivated, kEndsPrepared), which takes workgroups of
  // kInvocationsOfEnds with kSharedBytesOfEnds of shared memory.
  bool ends_blocks = true;
};

class Planner {
 public:
  Planner(PlanMemory& memory, const PlanOptions& options) : memory_(memory), options_(options) {}

  void add(const Operation& operation) { waiting_.push_back(operation); }

  // Plans what has been added. Operations that follow each other are joined where a kernel does
  // the work of several (plan_fused.cc).
  std::span<const Dispatch> finish();
  // The turns of the host among these dispatches.
  struct Turn {
    size_t dispatch;  // that it precedes
    int number;
  };
  std::span<const Turn> turns() const { return turns_; }
  // Forgets the dispatches; those that follow wait for all before them.
  void clear();

 private:
  struct Prepared {
    Address x = 0;
    uint32_t stride = 0;  // words
    MemoryRange range;
  };
  // Rows that a dispatch has also made in the form that the matrices which follow take.
  struct PreparedRows {
    MemoryRange rows;
    size_t count = 0;
    size_t stride = 0;  // elements
    uint32_t form = kPlainInput;
    int layout = 0;
    Prepared prepared;
    PreparedTo to;  // the same for the kernel; none: there is nothing to prepare
  };
  struct RowsOfInput {
    Slice input;
    size_t first = 0;   // row
    size_t rows = 0;    // to prepare
    size_t stride = 0;  // elements
  };

  template <class Params>
  void emit(const KernelVariant& variant, size_t x, size_t y, const Params& params,
            std::initializer_list<MemoryRange> reads, std::initializer_list<MemoryRange> writes);
  // The words of a slice that holds rows `stride` apart.
  MemoryRange rows_at(Slice slice, size_t first, size_t rows, size_t stride) const;
  Prepared prepare(const PlanMatrix& m, const RowsOfInput& rows, size_t& scratch_used);
  // The matrix that the operations after this one multiply `rows` with, if it needs them prepared.
  const PlanMatrix* user_of(Slice rows) const;
  // Room for such rows, if they have the columns of the user.
  PreparedRows room_for(const PlanMatrix* user, const MemoryRange& rows, size_t count,
                        size_t columns, size_t stride);
  void keep(const PreparedRows& prepared);
  void forget_prepared(std::initializer_list<MemoryRange> written);
  // The halves of scratch memory: of one operation, and of rows that are prepared by a dispatch
  // before it.
  MemoryRange own_scratch() const;
  MemoryRange kept_scratch() const;
  // Tokens of a round, if each takes `words` of scratch memory.
  size_t round_of(size_t tokens, size_t words) const;
  uint32_t codes_of(const PlanMatrix& m) const;
  uint32_t scales_of(const PlanMatrix& m) const;
  KernelVariant matmul_variant(std::span<const PlanMatrix* const> matrices, uint32_t parts,
                               size_t items, const Ending& ending = {}) const;
  // Workgroups of one tile.
  static size_t groups_of_items(const KernelVariant& variant, const MatmulParams& params);
  // `weight_bytes`: of all matrices that it reads, if no two items have the same expert.
  void emit_matmul(const KernelVariant& variant, MatmulParams& params, size_t tiles,
                   size_t weight_bytes, std::initializer_list<MemoryRange> reads,
                   std::initializer_list<MemoryRange> writes);

  void plan_waiting();
  // Plan the first of these operations as one dispatch, and return how many; 0: none.
  size_t plan_heads(std::span<const Operation> operations);
  size_t plan_latent(std::span<const Operation> operations);
  size_t plan_absorb(std::span<const Operation> operations);
  size_t plan_biased_norm(std::span<const Operation> operations);
  size_t plan_biased_route(std::span<const Operation> operations);

  // The work of latent attention between its products and attention.
  struct LatentWork {
    LatentParams params{};
    uint32_t kind = 0;
    size_t tokens = 0;
    MemoryRange queries, absorbed, latent;
    std::array<MemoryRange, 4> others;  // that are read
    MemoryRange state;
    size_t taken = 0;  // operations
  };
  std::optional<LatentWork> read_latent(std::span<const Operation> operations) const;
  void emit_absorb(const KernelVariant& variant, const MatmulParams& product,
                   const LatentWork& work, size_t weight_bytes, const MemoryRange& input,
                   const MemoryRange& output);

  void plan(const Embed& op);
  void plan(const Matmul& op);
  // In plan_gated.cc.
  void plan(const GatedUp& op);
  void plan_gated_apart(const GatedUp& op);
  // `user`: of the result, or none.
  bool ends_activated(const PlanMatrix& gate, const PlanMatrix& up, const PlanMatrix* user) const;
  // Rows that products end with.
  struct EndedRows {
    MemoryRange output;
    size_t columns = 0;  // 0: none
    PreparedRows prepared;

    MemoryRange outputs(size_t first, size_t count) const;
    MemoryRange blocks(size_t first, size_t count) const;
    ProductEnd end(size_t first, Activation activation, float limit) const;
  };
  EndedRows ended_rows(Slice output, size_t rows, size_t columns);
  void plan(const Activate& op);
  void plan_products(const Matmul& op, size_t begin, size_t count);
  void plan(const CopyRows& op);
  void plan(const CopyColumns& op);
  void plan(const RmsNorm& op);
  void plan(const AddRmsNorm& op);
  void plan_norm(NormParams params, size_t tokens, int weights,
                 std::initializer_list<MemoryRange> reads, const MemoryRange& sum, Slice output,
                 const MemoryRange& y);
  // `bias`: is added to the sum; or none.
  void plan_sum_norm(const AddRmsNorm& op, const MemoryRange& bias);
  void plan(const HeadSquares& op);
  void plan(const NormHeads& op);
  void plan(const Rope& op);
  void plan(const RotatePairs& op);
  void plan(const HeadMatmul& op);
  bool ends_prepared(const HeadMatmul& op, const PlanMatrix* user) const;
  // `latent`: what the same dispatch does besides; or null.
  void plan_head_products(const HeadMatmul& op, const LatentWork* latent);
  void plan(const StoreKv& op);
  void plan(const Attention& op);
  // A row attends to these before its positions.
  struct AttentionEntries {
    LayerPages pages;
    int pool = 0;
    Slice list_offsets;
    size_t blocks = 0;  // of a token, at most
  };
  // A workgroup has a whole row. `entries`: those of compressed attention; or null.
  void plan_unshared(const Attention& op, const AttentionEntries* entries);
  // Some tokens.
  void plan_attention(const Attention& op, const AttentionEntries* entries, size_t begin,
                      size_t count);
  // How the pages of a row are shared among workgroups.
  struct Split {
    uint32_t sharers = 1;
    uint32_t pages = 0;  // that a row may have; 0: they are not shared
  };
  Split split_of(const Attention& op) const;
  void plan_split_attention(const Attention& op, const Split& split);
  struct AttentionRanges {
    MemoryRange query, output, positions, offsets, lists, sinks, mask;
  };
  AttentionRanges ranges_of(const Attention& op, size_t begin, size_t count) const;
  AttentionParams params_of(const Attention& op, const AttentionRanges& ranges) const;
  PreparedRows room_for_heads(const PlanMatrix* user, const MemoryRange& output,
                              const Attention& op);
  void plan(const AddBias& op);
  void plan(const ScaleRows& op);
  void plan(const Scale& op);
  void plan(const Cap& op);
  // Changes each of `all` numbers in place.
  void plan_numbers(uint32_t kind, Slice numbers, size_t all);
  // Changes rows in place by an operand.
  void plan_rows(uint32_t kind, Slice rows, const MemoryRange& with, int tokens, int columns);
  void plan(const Route& op);
  // `score_bias`: is added to the scores; or none.
  void plan_route(const Route& op, const MemoryRange& score_bias);
  // In plan_gated.cc.
  void plan(const ExpertsUp& op);
  bool joins_shared(const ExpertsUp& op) const;
  struct ExpertsEnd {
    EndedRows experts, shared;
  };
  void plan_ended_experts(const ExpertsUp& op, const ExpertsEnd& to, size_t begin, size_t count);
  // The gates' and the ups'.
  std::pair<MemoryRange, MemoryRange> expert_biases(const ExpertsUp& op) const;
  void plan_experts_apart(const ExpertsUp& op, size_t begin, size_t count);
  void plan(const ExpertsDown& op);
  void plan_experts_down(const ExpertsDown& op, size_t begin, size_t count);
  void plan(const AddExpertBias& op);
  void plan(const Add& op);
  void plan(const HostTurn& turn);
  void plan(const Convolve& op);
  void plan(const Decay& op);
  void plan(const Sigmoid& op);
  void plan(const Silu& op);
  void plan(const DeltaRule& op);
  struct StateRanges {
    MemoryRange memory, from, to;
  };
  StateRanges ranges_of(const StateSlots& states, int tokens) const;
  // `offset`: of the operation's part of a state.
  static StatesInfo states_info(const StateSlots& states, const StateRanges& ranges, size_t offset,
                                int tokens);
  // In plan_sparse.cc.
  void plan(const LayerNorm& op);
  void plan(const PoolKeys& op);
  void plan(const IndexScores& op);
  void plan(const ChoosePositions& op);
  // In plan_compressed.cc.
  void plan(const StoreRows& op);
  void plan(const Compress& op);
  void plan(const CompressedAttention& op);
  // In plan_streams.cc.
  void plan(const StreamGates& op);
  void plan(const CollapseStreams& op);
  void plan(const UpdateStreams& op);
  void plan(const InjectStreams& op);
  void plan(const MatchStreams& op);
  void activate(ActivateParams params, std::initializer_list<MemoryRange> reads,
                const MemoryRange& output, const PlanMatrix* user);
  void elementwise(uint32_t kind, const ElementwiseParams& params,
                   std::initializer_list<MemoryRange> reads,
                   std::initializer_list<MemoryRange> writes);
  PagesInfo pages_info(const LayerPages& pages) const;
  MemoryRange state_of(const LayerPages& pages) const;

  PlanMemory& memory_;
  PlanOptions options_;
  Hazards hazards_;
  std::vector<Operation> waiting_;
  std::span<const Operation> after_;  // the operation that is being planned
  std::vector<PreparedRows> prepared_;
  size_t kept_bytes_ = 0;  // of kept_scratch()
  std::vector<Dispatch> dispatches_;
  std::vector<Turn> turns_;
};

}  // namespace lockstep::gpu
