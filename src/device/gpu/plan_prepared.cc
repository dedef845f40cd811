// Rows in the form that a quantised matrix takes: made by the dispatch that computes them where the
// operations after it are known to multiply them, else by a dispatch of their own.
#include <algorithm>

#include "base/check.h"
#include "device/gpu/emit.h"
#include "device/gpu/plan.h"

namespace lockstep::gpu {
namespace {

// How many operations after one may use its result prepared.
constexpr size_t kOperationsAhead = 8;
// Rows that a dispatch prepares may take this part of their scratch memory, so that those of a few
// dispatches stay.
constexpr size_t kKeptShare = 4;

// The first matrix of each product of these rows in an operation.
class Users {
 public:
  Users(const PlanMemory& memory, Slice rows) : memory_(memory), rows_(rows) {}

  template <class Op>
  const PlanMatrix* operator()(const Op&) const {
    return nullptr;
  }
  const PlanMatrix* operator()(const Matmul& op) const {
    for (int i = 0; i < op.count && op.input == rows_; ++i) {
      if (const PlanMatrix* m = quantised(op.products[i].matrix)) return m;
    }
    return nullptr;
  }
  const PlanMatrix* operator()(const GatedUp& op) const {
    return op.input == rows_ ? quantised(op.gate) : nullptr;
  }
  const PlanMatrix* operator()(const HeadMatmul& op) const {
    const bool is_user = op.input == rows_ && !op.matrices->empty();
    return is_user ? quantised(op.matrices->front()) : nullptr;
  }
  const PlanMatrix* operator()(const ExpertsUp& op) const {
    if (op.has_shared) {
      if (const PlanMatrix* m = (*this)(op.shared)) return m;
    }
    return op.input == rows_ ? quantised(op.matrices->gate[0]) : nullptr;
  }
  const PlanMatrix* operator()(const ExpertsDown& op) const {
    if (op.input == rows_) return quantised(op.matrices->down[0]);
    return op.has_shared && op.shared_input == rows_ ? quantised(op.shared) : nullptr;
  }

 private:
  const PlanMatrix* quantised(MatrixId id) const {
    const PlanMatrix& m = memory_.matrix(id);
    return m.is_empty() || m.input == kPlainInput ? nullptr : &m;
  }

  const PlanMemory& memory_;
  Slice rows_;
};

}  // namespace

MemoryRange Planner::own_scratch() const {
  const MemoryRange all = memory_.scratch();
  return {all.begin, all.bytes / 2};
}

MemoryRange Planner::kept_scratch() const {
  const MemoryRange all = memory_.scratch(), own = own_scratch();
  return {own.begin + own.bytes, all.bytes - own.bytes};
}

const PlanMatrix* Planner::user_of(Slice rows) const {
  for (const Operation& op : after_.first(std::min(after_.size(), kOperationsAhead))) {
    if (std::holds_alternative<HostTurn>(op)) break;
    if (const PlanMatrix* user = std::visit(Users(memory_, rows), op)) return user;
  }
  return nullptr;
}

Planner::PreparedRows Planner::room_for(const PlanMatrix* user, const MemoryRange& rows,
                                        size_t count, size_t columns, size_t stride) {
  if (user == nullptr || static_cast<size_t>(user->columns) != columns) return {};
  const MemoryRange kept = kept_scratch();
  const size_t words = user->prepared_words(), bytes = count * words * 4;
  if (bytes > kept.bytes / kKeptShare) return {};
  if (kept_bytes_ + bytes > kept.bytes) kept_bytes_ = 0;
  const MemoryRange to{kept.begin + kept_bytes_, bytes};
  kept_bytes_ += bytes;
  return {.rows = rows,
          .count = count,
          .stride = stride,
          .form = user->input,
          .layout = user->layout,
          .prepared = {to.begin, static_cast<uint32_t>(words), to},
          .to = {user->info, to.begin}};
}

void Planner::keep(const PreparedRows& prepared) {
  if (prepared.form != kPlainInput) prepared_.push_back(prepared);
}

void Planner::forget_prepared(std::initializer_list<MemoryRange> written) {
  std::erase_if(prepared_, [&](const PreparedRows& one) {
    return std::any_of(written.begin(), written.end(), [&](const MemoryRange& range) {
      return range.overlaps(one.rows) || range.overlaps(one.prepared.range);
    });
  });
}

Planner::Prepared Planner::prepare(const PlanMatrix& m, const RowsOfInput& rows,
                                   size_t& scratch_used) {
  const MemoryRange x = rows_at(rows.input, rows.first, rows.rows, rows.stride);
  if (m.input == kPlainInput) return {x.begin, static_cast<uint32_t>(rows.stride), x};
  for (const PreparedRows& one : prepared_) {
    const bool is_it = one.rows.begin == x.begin && one.form == m.input && one.layout == m.layout &&
                       one.stride == rows.stride && one.count >= rows.rows;
    if (is_it) return one.prepared;
  }
  const size_t words = m.prepared_words();
  const MemoryRange scratch = own_scratch();
  const MemoryRange to{scratch.begin + scratch_used * 4, rows.rows * words * 4};
  scratch_used += rows.rows * words;
  LOCKSTEP_CHECK(scratch_used * 4 <= scratch.bytes);
  emit({Kernel::kPrepare, {0, 0, m.input}}, groups_of(static_cast<size_t>(m.blocks), kGroupSize),
       rows.rows,
       PrepareParams{.x = x.begin,
                     .prepared = {m.info, to.begin},
                     .stride = static_cast<uint32_t>(rows.stride)},
       {x}, {to});
  return {to.begin, static_cast<uint32_t>(words), to};
}

}  // namespace lockstep::gpu
