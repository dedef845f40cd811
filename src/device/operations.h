// The operations that a forward pass queues on a device, as plain data. Values are in the device's
// buffers; a Slice is a place in one. All activations are float32, (tokens, ...) row-major and
// dense unless a stride is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "device/activation.h"
#include "device/attention_operations.h"
#include "device/router_form.h"
#include "device/slice.h"
#include "kernels/kernels.h"

namespace lockstep {

// output[token] = matrix row rows[token]; negative rows are another rank's and are skipped.
struct Embed {
  MatrixId matrix{};
  // Instead of one matrix its parts, which have one shape: with R rows each, row r is row r % R of
  // part r / R. Must outlive the operation.
  const std::vector<MatrixId>* parts = nullptr;
  Slice rows;  // int32 (tokens)
  int tokens = 0;
  Slice output;           // (tokens, output_stride), the first `columns` of each
  int output_stride = 0;  // 0: the columns

  std::span<const MatrixId> matrices() const {
    return parts ? std::span<const MatrixId>(*parts) : std::span<const MatrixId>(&matrix, 1);
  }
  bool operator==(const Embed&) const = default;
};

// The products of several matrices with one input, which a device prepares once.
struct Matmul {
  struct Product {
    MatrixId matrix{};
    Slice output;  // (subtrees, tokens, rows): the matrix's leaf steps define what is a subtree

    bool operator==(const Product&) const = default;
  };
  static constexpr int kProductsMax = 3;

  Slice input;  // (tokens, columns)
  int tokens = 0;
  Product products[kProductsMax];
  int count = 1;  // of products

  bool operator==(const Matmul&) const = default;
};

// output[token][i] = activation(gate * x, up * x)
struct GatedUp {
  MatrixId gate{};
  MatrixId up{};  // of gate's shape
  Slice input;    // (tokens, columns)
  int tokens = 0;
  Slice scratch;  // (tokens, rows)
  Slice output;   // like scratch
  Activation activation = Activation::kSiluMul;
  float limit = 0;  // of an activation that has one

  bool operator==(const GatedUp&) const = default;
};

// gate[token][i] = activation(gate[token][i], up[token][i]), without a limit: what GatedUp does
// with its products, for a gate and an `up` of any origin.
struct Activate {
  Slice gate;  // (tokens, columns), in place
  Slice up;    // (tokens, up_stride), the first `columns` of each; undefined afterwards
  int tokens = 0;
  int columns = 0;
  int up_stride = 0;
  Activation activation = Activation::kSiluMul;

  bool operator==(const Activate&) const = default;
};

// output[i] = input[rows[i]]
struct CopyRows {
  Slice input;
  Slice rows;  // int32 (count)
  int count = 0;
  int columns = 0;
  Slice output;
  int input_stride = 0;  // from one row to the next; 0: the columns

  bool operator==(const CopyRows&) const = default;
};

// output[i][column] = input[i][column], with a larger row stride on either side: joins columns of a
// matrix that were computed separately, or takes them apart.
struct CopyColumns {
  Slice input;  // (count, input_stride), starting at the first of the columns
  int count = 0;
  int columns = 0;
  Slice output;  // (count, output_stride), starting at the first of the columns
  int output_stride = 0;
  int input_stride = 0;  // 0: columns

  bool operator==(const CopyColumns&) const = default;
};

struct RmsNorm {
  Slice x;  // (tokens, stride); the first `columns` are normed
  Slice weight;
  int tokens = 0;
  int columns = 0;
  float epsilon = 0;
  Slice y;          // like x
  int stride = 0;   // 0: columns
  int weights = 1;  // rows of `columns` in the weight: row r of x takes row r % weights

  bool operator==(const RmsNorm&) const = default;
};

// sum += x, then y = the norm of sum: follows most exchanges, in one pass over the rows.
struct AddRmsNorm {
  Slice x;    // (tokens, columns)
  Slice sum;  // like x
  Slice weight;
  int tokens = 0;
  int columns = 0;
  float epsilon = 0;
  Slice y;  // like x

  bool operator==(const AddRmsNorm&) const = default;
};

// The sum of the squares of each head, for a norm over all heads of all ranks.
struct HeadSquares {
  Slice x;  // (tokens, x_stride), a token's first `heads` heads
  int x_stride = 0;
  int tokens = 0;
  int heads = 0;
  int head_dim = 0;
  Slice output;  // (tokens, output_stride), a token's first `heads` numbers
  int output_stride = 0;

  bool operator==(const HeadSquares&) const = default;
};

// The norm of some of a token's heads over all of them, whose squares are given.
struct NormHeads {
  Slice x;       // (tokens, heads, head_dim), in place
  Slice weight;  // (heads, head_dim)
  int tokens = 0;
  int heads = 0;
  int head_dim = 0;
  Slice squares;  // (tokens, squares_stride), a token's first `all_heads` numbers
  int squares_stride = 0;
  int all_heads = 0;
  float epsilon = 0;

  bool operator==(const NormHeads&) const = default;
};

// x = the norm of (x less its mean), plus the bias: the mean is taken out, then as RmsNorm.
struct LayerNorm {
  Slice x;  // (tokens, columns), in place
  Slice weight;
  Slice bias;
  int tokens = 0;
  int columns = 0;
  float epsilon = 0;

  bool operator==(const LayerNorm&) const = default;
};

struct Rope {
  Slice x;      // (tokens, heads, head_dim), in place
  Slice table;  // (tokens, 2, half): cosines, then sines
  int tokens = 0;
  int heads = 0;
  int head_dim = 0;
  int half = 0;

  bool operator==(const Rope&) const = default;
};

// Rotates neighbours (2i, 2i + 1) of `dims` dimensions of each head by the table's angles
// (DeepSeek's layout), and writes them to another place, which may be the same.
struct RotatePairs {
  Slice x;  // (tokens, heads, x_stride), from x_offset of each head on
  int x_stride = 0;
  int x_offset = 0;
  Slice table;
  int tokens = 0;
  int heads = 0;
  int dims = 0;
  Slice y;  // (tokens, heads, y_stride), from y_offset of each head on
  int y_stride = 0;
  int y_offset = 0;

  bool operator==(const RotatePairs&) const = default;
};

// Each head's own matrix times that head's values.
inline constexpr int kHeadMatricesMax = 256;
struct HeadMatmul {
  const std::vector<MatrixId>* matrices =
      nullptr;  // (heads), at most kHeadMatricesMax of one shape; must outlive the operation
  Slice input;  // (tokens, heads, input_stride)
  int input_stride = 0;
  int tokens = 0;
  Slice output;  // (tokens, heads, output_stride), the first rows() of each head
  int output_stride = 0;

  bool operator==(const HeadMatmul&) const = default;
};

// x[token][i] += bias[i]
struct AddBias {
  Slice x;  // (tokens, columns)
  Slice bias;
  int tokens = 0;
  int columns = 0;

  bool operator==(const AddBias&) const = default;
};

// x[token][i] *= factors[token]
struct ScaleRows {
  Slice x;  // (tokens, columns)
  Slice factors;
  int tokens = 0;
  int columns = 0;

  bool operator==(const ScaleRows&) const = default;
};

// x[i] *= factor[0]
struct Scale {
  Slice x;
  Slice factor;  // one number
  size_t count = 0;

  bool operator==(const Scale&) const = default;
};

// x[i] = cap * tanh(x[i] / cap)
struct Cap {
  Slice x;
  size_t count = 0;
  float cap = 1;

  bool operator==(const Cap&) const = default;
};

// Chooses the experts of each token from the router's scores (tokens, experts).
struct Route {
  Slice scores;  // undefined afterwards
  Slice bias;    // (experts), affects only the choice; not used with kSoftmax
  int tokens = 0;
  int experts = 0;
  int chosen = 0;
  RouterForm form = RouterForm::kSoftmax;
  // The experts of each token are given, and the scores affect only their weights; there is no
  // bias.
  bool has_given = false;
  Slice given;  // (tokens, chosen): ascending expert numbers as floats
  int groups = 1;
  int chosen_groups = 1;
  bool normalises = true;
  float factor = 1;
  bool has_scales = false;
  Slice scales;   // (experts): each expert's weight is multiplied by its own at the end
  Slice output;   // int32 (tokens, chosen): ascending expert numbers
  Slice weights;  // (tokens, chosen)

  bool has_bias() const { return form != RouterForm::kSoftmax && !has_given; }
  bool operator==(const Route&) const = default;
};

// The matrices of one layer's experts; they must outlive the operation. All of one kind (gate, up,
// down) have one shape and take their input in one form (MatrixSource::input_like).
struct ExpertMatrices {
  std::vector<MatrixId> gate;
  std::vector<MatrixId> up;
  std::vector<MatrixId> down;
};

// output[token][i] = activation(gate * x, up * x) * weight for the i-th chosen expert of each
// token; and the shared expert's part, which has the same input.
struct ExpertsUp {
  const ExpertMatrices* matrices = nullptr;
  Slice chosen;   // Route's output
  Slice weights;  // Route's weights
  int tokens = 0;
  int chosen_count = 0;
  Slice input;    // (tokens, columns)
  Slice scratch;  // (2, tokens, chosen, ffn)
  Slice output;   // (tokens, chosen, ffn)
  Activation activation = Activation::kSiluMul;
  float limit = 0;  // of an activation that has one
  bool has_bias = false;
  Slice gate_bias;  // (experts, ffn), added to the products
  Slice up_bias;
  bool has_shared = false;
  GatedUp shared;

  bool operator==(const ExpertsUp&) const = default;
};

// The sum over the chosen experts, in ascending order inside each leaf, followed by the shared
// expert.
struct ExpertsDown {
  const ExpertMatrices* matrices = nullptr;
  Slice chosen;
  int tokens = 0;
  int chosen_count = 0;
  Slice input;  // ExpertsUp's output
  bool has_shared = false;
  MatrixId shared{};
  Slice shared_input;  // (tokens, shared ffn)
  Slice output;        // (subtrees, tokens, rows)

  bool operator==(const ExpertsDown&) const = default;
};

// x[token] += the sum of weight * bias[expert] over the chosen experts, in ascending order.
struct AddExpertBias {
  Slice bias;     // (experts, columns)
  Slice chosen;   // Route's output
  Slice weights;  // Route's weights
  int tokens = 0;
  int experts = 0;
  int chosen_count = 0;
  int columns = 0;
  Slice x;  // (tokens, columns)

  bool operator==(const AddExpertBias&) const = default;
};

// sum += x
struct Add {
  Slice x;
  size_t count = 0;
  Slice sum;

  bool operator==(const Add&) const = default;
};

// States that a layer keeps of sequences instead of keys and values, one for each of some numbers.
// A token continues the state of one number and leaves its own under another one, or the same.
// Tokens are in order: one that continues the state of another one of the batch comes after it.
struct StateSlots {
  Slice memory;       // of number 0
  size_t stride = 0;  // elements, from one number to the next
  Slice from;         // int32 (tokens); negative: the sequence begins
  Slice to;           // int32 (tokens)

  bool operator==(const StateSlots&) const = default;
};

// Causal convolutions (ConvolveArgs in kernels/kernels.h), whose past inputs are in the state.
struct Convolve {
  struct Part {
    Slice x;        // (tokens, channels)
    Slice weights;  // (taps, channels)
    int channels = 0;
    size_t state_offset = 0;  // of its ((taps - 1) * dilation, channels)
    Slice y;                  // like x; may be x

    bool operator==(const Part&) const = default;
  };
  static constexpr int kPartsMax = 3;

  StateSlots states;
  int taps = 0;
  int tokens = 0;
  Part parts[kPartsMax];
  int dilation = 1;  // tokens from one tap to the next

  bool operator==(const Convolve&) const = default;
};

// x[token][i] = exp(-rate[i] * softplus(x[token][i] + bias[i])), or, with a least logarithm,
// exp(least * sigmoid(rate[i] * (x[token][i] + bias[i]))).
struct Decay {
  Slice x;  // (tokens, columns)
  Slice bias;
  Slice rate;
  int tokens = 0;
  int columns = 0;
  float least = 0;  // 0: none

  bool operator==(const Decay&) const = default;
};

// x[i] = sigmoid(x[i])
struct Sigmoid {
  Slice x;
  size_t count = 0;

  bool operator==(const Sigmoid&) const = default;
};

// x[i] = x[i] * sigmoid(x[i])
struct Silu {
  Slice x;
  size_t count = 0;

  bool operator==(const Silu&) const = default;
};

// The delta rule (DeltaArgs in kernels/kernels.h). Value head h belongs to key head
// h / (value_heads / key_heads).
struct DeltaRule {
  StateSlots states;
  size_t state_offset = 0;  // of its (value_heads, key_dim, value_dim)
  Slice query;              // (tokens, key_heads, key_dim)
  Slice key;
  Slice value;  // (tokens, value_heads, value_dim)
  Slice decay;  // (tokens, value_heads, decays)
  Slice rate;   // (tokens, value_heads)
  int tokens = 0;
  int key_heads = 0;
  int value_heads = 0;
  int key_dim = 0;
  int value_dim = 0;
  int decays = 1;  // or key_dim: one for each row of the state
  Slice output;    // like value

  bool operator==(const DeltaRule&) const = default;
};

// Several residual streams (hyper-connections, https://arxiv.org/abs/2409.19606, with the Sinkhorn
// iterations of https://arxiv.org/abs/2512.24880): a token's row has `streams` streams side by
// side. The numbers of a token's gates:
inline size_t gates_of(int streams) {
  return static_cast<size_t>(streams * (2 + streams));
}

// From a token's numbers x, n + n + n * n for n streams: with a = x * scale + bias (a scale for
// each of the three parts),
//   pre[j] = sigmoid(a) + epsilon, by which a stream enters a part of the layer;
//   post[j] = 2 * sigmoid(a), by which a stream gets its result;
//   mix[i][j] = softmax(a[i]) + epsilon, by which stream j gets stream i, then divided by the sums
//   of its columns plus epsilon, and `rounds` - 1 times by those of its rows and of its columns.
// Sums are in ascending order.
struct StreamGates {
  Slice x;      // (tokens, 2 * streams + streams * streams), in place
  Slice scale;  // (3)
  Slice bias;   // like a row of x
  int tokens = 0;
  int streams = 0;
  int rounds = 1;  // 0: a row is only pre (tokens, streams), with one scale
  float epsilon = 0;

  bool operator==(const StreamGates&) const = default;
};

// output[token][i] = the sum over streams j of weights[token][j] * streams[token][j][i], a chain of
// fused multiply-adds.
struct CollapseStreams {
  Slice input;             // (tokens, streams, columns)
  Slice weights;           // (tokens, weights_stride), the first `streams` of each
  int weights_stride = 0;  // 0: all tokens have the same
  int tokens = 0;
  int streams = 0;
  int columns = 0;
  Slice output;  // (tokens, columns)

  bool operator==(const CollapseStreams&) const = default;
};

// Each stream j becomes post[j] * x + the sum over streams i of mix[i][j] * stream i, a chain of
// fused multiply-adds in this order.
struct UpdateStreams {
  Slice x;      // (tokens, columns)
  Slice gates;  // StreamGates::x
  int tokens = 0;
  int streams = 0;
  int columns = 0;
  Slice output;  // (tokens, streams, columns), in place

  bool operator==(const UpdateStreams&) const = default;
};

// Each stream gets its part of x, by a gate of its own and without being mixed:
// output[token][j][i] = fma(2 * sigmoid(gates[token][j]), x[token][i], output[token][j][i]).
struct InjectStreams {
  Slice x;      // (tokens, columns)
  Slice gates;  // (tokens, streams)
  int tokens = 0;
  int streams = 0;
  int columns = 0;
  Slice output;  // (tokens, streams, columns), in place

  bool operator==(const InjectStreams&) const = default;
};

// output[token][j] = values[token], opened for each stream j by how well its key and its query
// match (KernelTable::match_stream).
struct MatchStreams {
  Slice keys;     // (tokens, streams, columns)
  Slice queries;  // like keys
  Slice values;   // (tokens, columns)
  int tokens = 0;
  int streams = 0;
  int columns = 0;
  Slice output;  // like keys; may be keys

  bool operator==(const MatchStreams&) const = default;
};

// The host has its turn, for an exchange: Device::run() calls it with this number.
struct HostTurn {
  int number = 0;

  bool operator==(const HostTurn&) const = default;
};

using Operation =
    std::variant<Embed, Matmul, GatedUp, CopyRows, CopyColumns, RmsNorm, AddRmsNorm, HeadSquares,
                 NormHeads, Rope, RotatePairs, HeadMatmul, StoreKv, Attention, AddBias, ScaleRows,
                 Scale, Cap, Route, ExpertsUp, ExpertsDown, AddExpertBias, Add, HostTurn, Convolve,
                 Decay, Sigmoid, DeltaRule, Activate, LayerNorm, PoolKeys, IndexScores,
                 ChoosePositions, StreamGates, CollapseStreams, UpdateStreams, StoreRows, Compress,
                 CompressedAttention, Silu, InjectStreams, MatchStreams>;

}  // namespace lockstep
