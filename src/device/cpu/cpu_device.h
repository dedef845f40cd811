// CpuDevice: runs operations on a team of threads, with the kernels of one instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <optional>

#include "base/threads/thread_team.h"
#include "device/cpu/expert_order.h"
#include "device/device.h"
#include "device/memory.h"
#include "device/packing/column_layouts.h"

namespace lockstep {

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options);

  Result<BufferId> allocate(size_t bytes, Access access) override;
  Result<MatrixId> pack(const MatrixSource& source) override;
  void write(Slice target, std::span<const std::byte> bytes) override;
  void read(Slice source, std::span<std::byte> bytes) override;
  void queue(const Operation& operation) override;
  Status run(const Turns& turn) override;
  std::span<float> host(BufferId buffer) override;
  void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) override;
  void take_back() override;
  uint64_t wait_count() const override { return wait_count_; }
  std::string description() const override;
  // How many sections of the team the operations have needed so far.
  uint64_t section_count() const { return team_.section_count(); }

 protected:
  // Calls what lend() was given.
  virtual void yield_to_host() { meanwhile_(); }
  // After each operation; for a device that plays another speed.
  virtual void has_run(const Operation&) {}
  struct Buffer {
    DeviceMemory memory;
    size_t bytes;
    Access access;
  };
  std::span<const Buffer> buffers() const { return buffers_; }
  BufferId add_buffer(DeviceMemory memory, size_t bytes, Access access);

 private:
  using Clock = std::chrono::steady_clock;
  using Chunks = ThreadTeam::Chunks;

  // How often the host is called while buffers are lent: polling a link may be a system call.
  static constexpr std::chrono::microseconds kHostTurn{20};
  // Operations of a pass for which there is room from the beginning.
  static constexpr size_t kOperationsUsual = 4096;
  // Work in multiply-adds; a thread does some 20 in a nanosecond. Less than this is not worth a
  // section of the team, nor a chunk of its own.
  static constexpr size_t kSectionCost = 32 << 10;
  static constexpr size_t kChunkCost = 16 << 10;
  // Work is divided into at least this many pieces per thread, so that the last one takes little.
  static constexpr int kPiecesPerThread = 16;
  static constexpr int kFewTokens = 16;
  // A piece of a matrix in tiles: whole groups.
  static constexpr int kPieceTilesMin = kGroupTiles;
  static constexpr int kPieceTilesMax = 8;

  struct IndexRange {
    int begin;
    int end;
    int size() const { return end - begin; }
  };
  struct Matrix {
    PackedMatrix packed;
    const ColumnLayout* layout;

    size_t rows() const { return static_cast<size_t>(packed.rows); }
    size_t columns() const { return static_cast<size_t>(packed.columns); }
    bool is_empty() const { return packed.rows == 0 || layout->steps.empty(); }
    int tiles() const { return tile_count(packed.rows); }
    int piece_count(int piece_tiles) const { return (tiles() + piece_tiles - 1) / piece_tiles; }
    const std::byte* tile(int index) const {
      return packed.tiles + static_cast<size_t>(index) * packed.tile_bytes;
    }
    // nullptr after the last one.
    const std::byte* tile_if_any(int index) const {
      return index < tiles() ? tile(index) : nullptr;
    }
    IndexRange tiles_of(IndexRange pieces, int piece_tiles) const {
      return {pieces.begin * piece_tiles, std::min(tiles(), pieces.end * piece_tiles)};
    }
    // One token's input in the form that the kernels take.
    size_t input_bytes() const;
    // Whether both are multiplied with plain floats, blocks of floats or blocks of integers.
    bool takes_form_of(const PackedMatrix& other) const;
    // Whether an input prepared for one of them also serves the other.
    bool shares_input_with(const PackPlan& plan) const;
    bool shares_input_with(const Matrix& other) const;
  };
  // Activations in the form that a matrix takes.
  struct Input {
    const void* data;
    size_t stride;  // bytes from one token to the next

    const void* of(size_t token) const {
      return static_cast<const std::byte*>(data) + token * stride;
    }
  };
  // The forms in which some matrices take one input; matrices that can share one do.
  static constexpr size_t kFormsMax = 4;
  struct Forms {
    std::array<const Matrix*, kFormsMax> matrices{};  // one for each form
    std::array<Input, kFormsMax> inputs{};            // once they are prepared
    size_t count = 0;
    size_t bytes = 0;  // of scratch memory for each token

    size_t add(const Matrix& m);  // the number of the form that it takes
  };
  // A matrix, its form of the input and where its products go.
  struct Multiplied {
    const Matrix* matrix = nullptr;
    size_t form = 0;
    float* output = nullptr;
  };
  struct Gated {
    Multiplied gate;
    Multiplied up;
    Activation activation{};
    float limit = 0;
  };
  struct ExpertsUpRound;
  struct ExpertsDownRound;

  // Memory for packed weights, cut from large slabs: a model may have more matrices than a process
  // may have mappings.
  Result<std::byte*> take_slab_bytes(size_t bytes);
  Status reserve_scratch(const Matrix& m, int inputs_per_token);
  // How many tokens fit in the scratch memory if each takes `bytes`.
  int tokens_in_scratch(size_t bytes) const;
  // `tokens` rows of floats, `stride` floats apart, in the matrix's form: unchanged, or converted
  // to blocks at `to`, where the caller has checked that there is room.
  Input prepare(const Matrix& m, const float* input, size_t stride, int tokens, std::byte* to);
  // Converts some rows on this thread; not for plain elements.
  void prepare_rows(const Matrix& m, const float* input, size_t stride, IndexRange tokens,
                    std::byte* to) const;
  static MatmulPart part_of(const Matrix& m, const void* input, size_t stride) {
    return {&m.packed, input, stride};
  }
  void prepare(Forms& forms, const float* input, size_t stride, int tokens);
  // How many tiles a piece has if there are `tiles` in all.
  int piece_tiles(int tiles) const;
  // Some tiles of a matrix for all tokens; `output` is the first token's. `next` is what this
  // thread will read after them, or nullptr: the tiles that follow.
  void multiply(const Matrix& m, Input input, IndexRange tiles, int tokens, float* output,
                size_t subtree_stride, const std::byte* next = nullptr) const;
  // A round of the tokens, whose input is prepared.
  void multiply(std::span<const Multiplied> products, const Forms& forms, IndexRange round,
                size_t all_tokens);
  Gated open_gated(const GatedUp& op, Forms& forms);
  void run_gated(const Gated& of, const Forms& forms, IndexRange tiles, IndexRange tokens) const;
  Input rows_by_expert(const Matrix& m, Input prepared, size_t tokens, std::byte* rows);
  void run_expert_piece(const ExpertsUpRound& round, const ExpertOrder::Run& run, IndexRange tiles,
                        const std::byte* next) const;
  // Joins `count` products in place of `gate`; `up` is undefined afterwards.
  void join(Activation activation, float limit, float* gate, float* up, size_t count) const;
  void activate(const ExpertsUp& op, size_t first_bias, size_t count, float* gate, float* up) const;

  // The address of a slice of `elements` four-byte elements, checked to be inside its buffer.
  std::byte* place(Slice slice, size_t elements) const;
  float* floats(Slice slice, size_t elements) const;
  const int32_t* ints(Slice slice, size_t elements) const;
  uint32_t* words(Slice slice, size_t elements) const;
  const Matrix& matrix(MatrixId id) const { return matrices_[static_cast<size_t>(id)]; }
  PageArgs page_args(const LayerPages& pages) const;
  // body(begin, end) over rows of work, each of about `cost` multiply-adds.
  template <class Body>
  void parallel(int count, size_t cost, Body&& body) {
    parallel(count, cost, Chunks::kEqual, body);
  }
  template <class Body>
  void parallel(int count, size_t cost, Chunks chunks, Body&& body);
  // body(token, first column, columns) over all columns of all tokens, at most `most` at a time,
  // each of about `cost` multiply-adds.
  template <class Body>
  void in_columns(size_t tokens, size_t columns, size_t most, size_t cost, Body&& body);
  // body(piece) for large pieces of work, each a chunk of its own.
  template <class Body>
  void pieces(int count, size_t cost, Chunks chunks, Body&& body);
  // body(begin, end) in chunks, with turns of the host between them.
  template <class Body>
  void in_chunks(int count, int grain, Chunks chunks, Body&& body);
  // Chunks of a product with matrices that are read from memory: a few tokens use each weight once,
  // so what counts is that threads read long runs of it.
  static Chunks chunks_for(int tokens) {
    return tokens <= kFewTokens ? Chunks::kShrinking : Chunks::kEqual;
  }
  bool is_lent() const { return meanwhile_ != nullptr; }
  void take_turn();
  // Runs what is queued up to a turn of the host, from operation `begin` on; the number of the
  // turn, or of all.
  size_t run_to_turn(size_t begin);

  void run(const Embed& op);
  void run(const Matmul& op);
  void run(const GatedUp& op);
  void run(const Activate& op);
  void run(const CopyRows& op);
  void run(const CopyColumns& op);
  void run(const RmsNorm& op);
  void run(const AddRmsNorm& op);
  void run(const HeadSquares& op);
  void run(const NormHeads& op);
  void run(const Rope& op);
  void run(const RotatePairs& op);
  void run(const HeadMatmul& op);
  void run(const StoreKv& op);
  void store(const StoreKvArgs& args, int tokens, size_t cost);
  void run(const Attention& op);
  void run(const AddBias& op);
  void run(const ScaleRows& op);
  void run(const Scale& op);
  void run(const Cap& op);
  void run(const Route& op);
  void run(const ExpertsUp& op);
  void run_experts_up(const ExpertsUp& op, IndexRange tokens, Forms& forms, const Gated* shared);
  void run(const ExpertsDown& op);
  bool sort_into_long_runs(const ExpertsDown& op, const ExpertsDownRound& round);
  void run_down_by_token(const ExpertsDown& op, const ExpertsDownRound& round);
  void run_down_by_expert(const ExpertsDown& op, const ExpertsDownRound& round);
  Input prepare_slots(const Matrix& m, const float* input, std::byte* to);
  void run(const AddExpertBias& op);
  void run(const Add& op);
  void run(const HostTurn&) {}
  // In cpu_device_recurrent.cc.
  void run(const Convolve& op);
  void convolve(const Convolve& op, const Convolve::Part& part);
  void run(const Decay& op);
  void run(const Sigmoid& op);
  void run(const Silu& op);
  void run(const DeltaRule& op);
  // In cpu_device_sparse.cc.
  void run(const LayerNorm& op);
  void run(const PoolKeys& op);
  void run(const IndexScores& op);
  void run(const ChoosePositions& op);
  // In cpu_device_streams.cc.
  void run(const StreamGates& op);
  void run(const CollapseStreams& op);
  void run(const UpdateStreams& op);
  void run(const InjectStreams& op);
  void run(const MatchStreams& op);
  // In cpu_device_compressed.cc.
  void run(const StoreRows& op);
  void run(const Compress& op);
  void run(const CompressedAttention& op);

  const KernelTable& kernels_;
  ThreadTeam team_;
  std::vector<Buffer> buffers_;
  std::vector<Matrix> matrices_;
  ColumnLayouts layouts_;
  std::vector<DeviceMemory> slabs_;
  size_t slab_used_ = 0;  // of the last one
  bool keeps_float_input_;
  std::optional<DeviceMemory> scratch_;  // prepared activations
  ExpertOrder expert_order_;
  std::vector<MatmulRun> down_runs_;  // scratch
  std::vector<int32_t> down_tokens_;  // scratch
  std::vector<Operation> queued_;
  uint64_t wait_count_ = 0;
  std::function<void()> meanwhile_;  // set while buffers are lent
  Clock::time_point last_turn_{};
};

template <class Body>
void CpuDevice::parallel(int count, size_t cost, Chunks chunks, Body&& body) {
  const size_t total = static_cast<size_t>(count) * cost;
  if (total <= kSectionCost || (team_.size() == 1 && !is_lent())) {
    if (count > 0) body(0, count);
    return;
  }
  const int least = static_cast<int>(
      std::min<size_t>(kChunkCost / std::max<size_t>(cost, 1) + 1, static_cast<size_t>(count)));
  const int even = chunks == Chunks::kEqual ? count / (team_.size() * kPiecesPerThread) : 0;
  in_chunks(count, std::max(least, even), chunks, body);
}

template <class Body>
void CpuDevice::in_columns(size_t tokens, size_t columns, size_t most, size_t cost, Body&& body) {
  const size_t chunks = (columns + most - 1) / most;
  parallel(static_cast<int>(tokens * chunks), cost * most, [&](int begin, int end) {
    for (auto chunk = static_cast<size_t>(begin); chunk < static_cast<size_t>(end); ++chunk) {
      const size_t first = chunk % chunks * most;
      body(chunk / chunks, first, std::min(most, columns - first));
    }
  });
}

template <class Body>
void CpuDevice::pieces(int count, size_t cost, Chunks chunks, Body&& body) {
  const bool is_small = static_cast<size_t>(count) * cost <= kSectionCost;
  in_chunks(count, is_small ? std::max(count, 1) : 1, chunks, [&](int begin, int end) {
    for (int piece = begin; piece < end; ++piece) body(piece);
  });
}

template <class Body>
void CpuDevice::in_chunks(int count, int grain, Chunks chunks, Body&& body) {
  // The host wants its turns often.
  team_.for_each_chunk(count, grain, is_lent() ? Chunks::kEqual : chunks, body, [this] {
    if (is_lent()) take_turn();
  });
}

}  // namespace lockstep
