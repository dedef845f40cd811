// The parameters of the kernels in this folder, as their buffers hold them. Included by C++ and by
// GLSL (common.glsl), which lay these structs out alike: addresses first, then words.
#pragma once

#ifdef __cplusplus
#include <cstdint>

namespace lockstep::gpu {

using Address = uint64_t;  // of memory on the device; 0: none
#define LOCKSTEP_CONSTANT inline constexpr
#else
#define Address uvec2
#define uint32_t uint
#define int32_t int
#define LOCKSTEP_CONSTANT const
#endif

// Rows of a tile, tiles of a group, columns of a block and of a run, positions of a page: as
// kernels/packed_matrix.h and kernels/kernels.h say, which plan.cc checks.
LOCKSTEP_CONSTANT uint32_t kTileRows = 16u;
LOCKSTEP_CONSTANT uint32_t kTilesOfGroup = 4u;
LOCKSTEP_CONSTANT uint32_t kColumnsOfBlock = 32u;
LOCKSTEP_CONSTANT uint32_t kColumnsOfRun = 256u;
LOCKSTEP_CONSTANT uint32_t kPositionsOfPage = 64u;
LOCKSTEP_CONSTANT uint32_t kLanesOfNorm = 128u;
// Words of InputBlock8 and InputBlockF.
LOCKSTEP_CONSTANT uint32_t kWordsOfBlock8 = 12u;
LOCKSTEP_CONSTANT uint32_t kWordsOfBlockF = 36u;
// Invocations of a workgroup.
LOCKSTEP_CONSTANT uint32_t kGroupSize = 64u;
// Those of a row of a product.
LOCKSTEP_CONSTANT uint32_t kLanesOfMatmul = 8u;
// Blocks of a workgroup of `activate`, if it makes blocks.
LOCKSTEP_CONSTANT uint32_t kBlocksOfActivate = 16u;
// Items (tokens) of a workgroup that multiplies without sharing terms.
LOCKSTEP_CONSTANT uint32_t kItemsOfGroup = 8u;
LOCKSTEP_CONSTANT uint32_t kExpertsMax = 1024u;
LOCKSTEP_CONSTANT uint32_t kMostStreams = 8u;    // kResidualStreamsMax in kernels/kernels.h
LOCKSTEP_CONSTANT uint32_t kHeadDimMax = 1024u;  // of row.glsl

// In which form a matrix takes its input.
LOCKSTEP_CONSTANT uint32_t kPlainInput = 0u;
LOCKSTEP_CONSTANT uint32_t kIntegerInput = 1u;
LOCKSTEP_CONSTANT uint32_t kFloatInput = 2u;

// One leaf of the columns.
struct StepInfo {
  uint32_t block_begin;
  uint32_t block_count;
  uint32_t column_begin;
  uint32_t columns;
  uint32_t merges;
  uint32_t ends_subtree;
};

struct BlockInfo {
  uint32_t column_begin;
  uint32_t columns;
  uint32_t piece;
  uint32_t piece_begin;  // the piece's first block
};

// PackedMatrix in kernels/packed_matrix.h; sizes in words.
struct MatrixInfo {
  Address tiles;
  Address steps;    // StepInfo
  Address blocks;   // BlockInfo
  uint32_t codes;   // PackedCodes
  uint32_t scales;  // PackedScales
  uint32_t input_form;
  uint32_t rows;
  uint32_t columns;
  uint32_t tile_words;
  uint32_t scales_at;
  uint32_t step_count;
  uint32_t block_count;
  int32_t code_offset;
  float factor;
  uint32_t table[4];  // sixteen bytes
};

struct EmbedParams {
  Address matrix;
  Address parts;  // of a matrix: addresses of each; 0: `matrix` is whole
  Address rows;
  Address outputs;
  uint32_t stride;  // of a row of the outputs
};

// Where a kernel puts its result as blocks of activations.
struct PreparedTo {
  Address matrix;  // whose blocks the columns are cut into
  Address blocks;
};

struct PrepareParams {
  Address x;
  PreparedTo prepared;
  uint32_t stride;  // of a row of x
};

// Which matrices an item is multiplied with, and which row of the input.
LOCKSTEP_CONSTANT uint32_t kOneMatrix = 0u;   // the product's; row: the item
LOCKSTEP_CONSTANT uint32_t kOneExpert = 1u;   // table[chosen[item]]; row: item / slots
LOCKSTEP_CONSTANT uint32_t kOneHead = 2u;     // table[item % slots]; row: the item
LOCKSTEP_CONSTANT uint32_t kAllExperts = 3u;  // table[chosen[item * slots + i]] for each slot, then
                                              // `shared_matrix`; row: item * slots + i
// The first two products as kOneExpert, the other two as kOneMatrix with an item for each token.
LOCKSTEP_CONSTANT uint32_t kExpertsAndShared = 4u;

// The fate of a product's sums. If not kEndsStored, a workgroup has all rows of a block of the
// result: two tiles, or two of a gate and two of its up.
LOCKSTEP_CONSTANT uint32_t kEndsStored = 0u;
LOCKSTEP_CONSTANT uint32_t kEndsPrepared = 1u;   // the result is also made into blocks
LOCKSTEP_CONSTANT uint32_t kEndsActivated = 2u;  // products 0 and 1, and 2 and 3, are a gate and an
                                                 // up; only what activation joins them to is stored
LOCKSTEP_CONSTANT uint32_t kTilesOfBlock = 2u;

struct Product {
  Address matrix;  // or the table of the addresses of several
  Address x;
  Address outputs;
  uint32_t x_stride;  // words from one row of the input to the next
  uint32_t tile_end;  // tiles, or blocks of the result, of this product and of those before it
  uint32_t item_stride;
  uint32_t subtree_stride;
};

// GateJoin::activation, as Activation in device/operations.h, which plan.cc checks.
LOCKSTEP_CONSTANT uint32_t kActivateSilu = 0u;
LOCKSTEP_CONSTANT uint32_t kActivateClamped = 1u;
LOCKSTEP_CONSTANT uint32_t kActivateGelu = 2u;
LOCKSTEP_CONSTANT uint32_t kActivateSigmoid = 3u;
LOCKSTEP_CONSTANT uint32_t kActivateClipped = 4u;
// kGeluSlope and kGeluSquare there.
LOCKSTEP_CONSTANT float kSlopeOfGelu = 1.5957691216f;
LOCKSTEP_CONSTANT float kSquareOfGelu = 0.0713548163f;

// How a gate and an up are joined (activate.glsl).
struct GateJoin {
  Address gate_bias;  // of the experts, or none
  Address up_bias;
  Address weights;  // of the chosen experts, or none
  uint32_t columns;
  uint32_t activation;  // kActivateSilu...
  float limit;
};

// The end of one product, of which `join` has the columns alone, or of a gate and an up.
struct ProductEnd {
  Address outputs;  // (items, columns)
  Address blocks;   // the result as blocks, in the form that the kernel says; or none
  GateJoin join;
};

struct MatmulParams {
  Product products[4];
  ProductEnd ends[2];
  Address chosen;
  Address shared_matrix;
  Address shared_x;
  uint32_t shared_stride;
  uint32_t items;
  uint32_t slots;
};

struct ActivateParams {
  Address gate;
  Address up;
  Address outputs;
  Address chosen;
  PreparedTo prepared;
  GateJoin join;
  uint32_t rows;
  uint32_t up_stride;  // of a row of ups
};

struct NormParams {
  Address x;
  Address sum;   // x is added to it and the sum normed; or none
  Address bias;  // is added to the sum after x; or none
  Address weight;
  Address y;
  PreparedTo prepared;
  uint32_t columns;
  uint32_t stride;
  float epsilon;
};

struct HeadSquaresParams {
  Address x;
  Address outputs;
  uint32_t x_stride;
  uint32_t output_stride;
  uint32_t head_dim;
};

struct NormHeadsParams {
  Address x;
  Address weight;
  Address squares;
  uint32_t columns;  // of the own heads
  uint32_t head_dim;
  uint32_t squares_stride;
  uint32_t all_heads;
  float epsilon;
};

struct RopeParams {
  Address x;
  Address table;
  uint32_t heads;
  uint32_t head_dim;
  uint32_t half_dims;
};

struct RotateParams {
  Address x;
  Address y;
  Address table;
  uint32_t heads;
  uint32_t x_stride;
  uint32_t x_offset;
  uint32_t y_stride;
  uint32_t y_offset;
  uint32_t half_dims;
};

struct PagesInfo {
  Address keys;
  Address values;
  uint32_t page_bytes;  // from one page to the next
  uint32_t head_bytes;  // from one head to the next in a page
  uint32_t head_dim;
  uint32_t value_dim;
  uint32_t kv_heads;
};

struct StoreParams {
  PagesInfo pages;
  Address keys;  // or none
  Address values;
  Address page;
  Address slot;
  uint32_t keys_stride;
  uint32_t values_stride;
};

// Queries, keys and values between their products and attention.
struct HeadsParams {
  PagesInfo pages;
  Address query;
  Address key;
  Address value;
  Address query_bias;  // or none, like the next four
  Address key_bias;
  Address value_bias;
  Address query_norm;
  Address key_norm;
  Address factors;  // of the query of each token, or none
  Address table;
  Address page;
  Address slot;
  uint32_t heads;  // of the query
  uint32_t head_dim;
  uint32_t half_dims;
  float query_epsilon;
  float key_epsilon;
};

// The same with latent attention.
struct LatentParams {
  PagesInfo pages;
  Address query;
  Address absorbed;
  Address latent;
  Address weight;
  Address table;
  Address page;
  Address slot;
  uint32_t heads;
  uint32_t x_stride;  // of the query
  uint32_t x_offset;
  uint32_t y_stride;  // of the absorbed query
  uint32_t y_offset;
  uint32_t half_dims;
  uint32_t columns;  // of the latent that are normed; those that are rotated follow
  float epsilon;
};

// The product of each head, and what latent attention does besides.
struct AbsorbParams {
  MatmulParams matmul;
  LatentParams latent;
};

struct AttentionParams {
  PagesInfo pages;
  Address query;
  Address positions;
  Address page_lists;
  Address list_offsets;
  Address sinks;  // or none
  Address outputs;
  // Between dispatches: of each row the maximum and the sum, if they take some pages each; of each
  // row and page its part, if workgroups share a row's pages; or none.
  Address parts;
  PreparedTo prepared;
  uint32_t page_begin;
  uint32_t page_end;
  uint32_t heads;
  uint32_t head_begin;
  uint32_t heads_per_kv;
  uint32_t kv_begin;
  uint32_t window;
  float scale;
  uint32_t sharers;      // workgroups of a row
  uint32_t parts_pages;  // of a row
  // For attention over chosen positions, which tokens from position `chosen` on have, or entries,
  // which those with more than `chosen` have.
  Address mask;
  uint32_t mask_words;
  uint32_t chosen;
  // Entries of compressed attention.
  Address entries;  // where their pages begin
  uint32_t entries_page_bytes;
  uint32_t pool;          // positions of an entry; 0: there are none
  Address entry_offsets;  // of the lists of their pages
};

struct LayerNormParams {
  Address x;
  Address weight;
  Address bias;
  uint32_t columns;
  float epsilon;
};

// Each invocation has a column of a token's pool, if its position completes one.
struct PoolKeyParams {
  PagesInfo inputs;
  PagesInfo pools;
  Address bias;
  Address page;
  Address slot;
  uint32_t pool;  // positions
};

// Each invocation has a column of an entry.
struct CompressParams {
  PagesInfo inputs;
  Address bias;  // or none
  Address last;
  Address page_lists;
  Address list_offsets;
  Address outputs;
  uint32_t pool;  // positions
  uint32_t overlaps;
  uint32_t columns;
};

struct IndexScoresParams {
  PagesInfo pages;
  Address query;
  Address weights;
  Address positions;
  Address page_lists;
  Address list_offsets;
  Address scores;
  uint32_t heads;
  uint32_t chosen;
  uint32_t stride;  // of a token's scores
  uint32_t pool;    // positions of a key
};

struct ChoosePositionsParams {
  Address scores;
  Address positions;
  Address mask;
  uint32_t stride;
  uint32_t mask_words;
  uint32_t chosen;  // pools
  uint32_t pool;    // positions
};

// RouteParams::form, as RouterForm in device/operations.h, which plan.cc checks.
LOCKSTEP_CONSTANT uint32_t kScoresSoftmax = 0u;
LOCKSTEP_CONSTANT uint32_t kScoresSigmoid = 1u;
LOCKSTEP_CONSTANT uint32_t kScoresRootSoftplus = 2u;

struct RouteParams {
  Address scores;
  Address score_bias;  // is added to the scores; or none
  Address bias;        // or none
  Address scales;      // of the weights; or none
  Address given;       // the experts, as floats; or none
  Address chosen;
  Address weights;
  uint32_t experts;
  uint32_t chosen_count;
  uint32_t form;
  uint32_t groups;
  uint32_t chosen_groups;
  uint32_t normalises;
  float factor;
};

// The work of an elementwise kernel in row r and column c.
LOCKSTEP_CONSTANT uint32_t kAdd = 0u;            // y[r][c] += x[r][c]
LOCKSTEP_CONSTANT uint32_t kAddBias = 1u;        // y[r][c] += x[c]
LOCKSTEP_CONSTANT uint32_t kScaleRows = 2u;      // y[r][c] *= x[r]
LOCKSTEP_CONSTANT uint32_t kCopyRows = 3u;       // y[r][c] = x[rows[r] * x_stride + c]
LOCKSTEP_CONSTANT uint32_t kCopyColumns = 4u;    // y[r * y_stride + c] = x[r * x_stride + c]
LOCKSTEP_CONSTANT uint32_t kAddExpertBias = 5u;  // y[r][c] += sum of weights * x[chosen][c]
LOCKSTEP_CONSTANT uint32_t kScale = 6u;          // y[r][c] *= x[0]
LOCKSTEP_CONSTANT uint32_t kCap = 7u;            // y[r][c] = cap * tanh(y[r][c] / cap)
LOCKSTEP_CONSTANT uint32_t kSigmoid = 8u;        // y[r][c] = sigmoid(y[r][c])
LOCKSTEP_CONSTANT uint32_t kDecay = 9u;  // y[r][c] = exp(-weights[c] * softplus(y[r][c] + x[c]))
// y[r][c] = exp(least * sigmoid(weights[c] * (y[r][c] + x[c])))
LOCKSTEP_CONSTANT uint32_t kBoundedDecay = 10u;
LOCKSTEP_CONSTANT uint32_t kSilu = 11u;  // y[r][c] = y[r][c] * sigmoid(y[r][c])

struct ElementwiseParams {
  Address x;
  Address y;
  Address rows;  // or the chosen experts
  Address weights;
  uint32_t row_count;
  uint32_t columns;
  uint32_t y_stride;
  uint32_t slots;
  float cap;  // or the least logarithm of a decay
  uint32_t x_stride;
};

// Where a layer's states are, and which of them each token continues and leaves.
struct StatesInfo {
  Address memory;
  Address from;
  Address to;
  uint32_t state_bytes;  // from one number to the next
  uint32_t tokens;
};

struct ConvolveParams {
  StatesInfo states;
  Address x;
  Address weights;
  Address y;
  uint32_t channels;
  uint32_t taps;
  uint32_t dilation;
};

struct DeltaParams {
  StatesInfo states;
  Address query;
  Address key;
  Address value;
  Address decay;
  Address rate;
  Address outputs;
  uint32_t key_heads;
  uint32_t value_heads;
  uint32_t key_dim;
  uint32_t value_dim;
  uint32_t decays;
};

// Where the streams of a token are in its row of gates: as StreamGates in device/operations.h says.
struct StreamGatesParams {
  Address x;
  Address scale;
  Address bias;
  uint32_t streams;
  uint32_t rounds;
  float epsilon;
};

// The work of the kernel of streams in a column of a token, as CollapseStreams, UpdateStreams and
// InjectStreams in device/operations.h say.
LOCKSTEP_CONSTANT uint32_t kCollapse = 0u;
LOCKSTEP_CONSTANT uint32_t kUpdate = 1u;
LOCKSTEP_CONSTANT uint32_t kInject = 2u;

struct StreamsParams {
  Address x;  // a row of each token: the sum of its streams, or what is added to them
  Address streams;
  Address weights;
  uint32_t weights_stride;  // from one token's weights to the next
  uint32_t count;           // of streams
  uint32_t columns;
};

// A workgroup has a stream of a token.
struct MatchStreamsParams {
  Address keys;
  Address queries;
  Address values;
  Address outputs;
  uint32_t streams;
  uint32_t columns;
};

// Results for each triple (a, b, c): a * b + c, a / b, the root of |a|, exp(c).
struct ProbeParams {
  Address inputs;
  Address outputs;
  uint32_t count;
};

#ifdef __cplusplus
}  // namespace lockstep::gpu
#endif
