#include "weights/source/transposed_experts.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace lockstep {
namespace {

// Rows and columns moved together, so that sources and destinations stay in the cache.
constexpr int kBlock = 64;

struct ExpertPart {
  int row_begin;
  int row_end;
  int column_begin;
  int column_end;
};

ExpertPart part_of(const MatrixRequest& request) {
  const ExpertPart part{request.row_begin, request.row_end > 0 ? request.row_end : request.rows,
                        request.column_begin,
                        request.column_end > 0 ? request.column_end : request.columns};
  LOCKSTEP_CHECK(part.row_begin >= 0 && part.row_end <= request.rows);
  LOCKSTEP_CHECK(part.column_begin >= 0 && part.column_end <= request.columns);
  return part;
}

// `from` is (columns, request.rows * rows.step), `to` (request.rows, request.columns).
template <size_t kBytes>
void transpose(const std::byte* from, const MatrixRequest& request, StoredRows rows,
               std::byte* to) {
  const ExpertPart part = part_of(request);
  const auto step = static_cast<size_t>(rows.step);
  const size_t from_width = static_cast<size_t>(request.rows) * step;
  const auto to_width = static_cast<size_t>(request.columns);
  for (int row = part.row_begin; row < part.row_end; row += kBlock) {
    const int row_end = std::min(row + kBlock, part.row_end);
    for (int column = part.column_begin; column < part.column_end; column += kBlock) {
      const int column_end = std::min(column + kBlock, part.column_end);
      for (auto r = static_cast<size_t>(row); r < static_cast<size_t>(row_end); ++r) {
        const std::byte* source = from + (r * step + static_cast<size_t>(rows.first)) * kBytes;
        for (auto c = static_cast<size_t>(column); c < static_cast<size_t>(column_end); ++c) {
          std::memcpy(to + (r * to_width + c) * kBytes, source + c * from_width * kBytes, kBytes);
        }
      }
    }
  }
}

}  // namespace

Result<StoredMatrix> transposed_expert(const TensorView& expert, const MatrixRequest& request,
                                       StoredRows rows) {
  LOCKSTEP_CHECK(rows.first >= 0 && rows.first < rows.step);
  TRY(expect_float(expert));
  TRY(expect_shape(expert, {request.columns, int64_t{request.rows} * rows.step}));
  const size_t element_bytes = dtype_bytes(expert.dtype);
  StoredMatrix matrix;
  matrix.rows = request.rows;
  matrix.columns = request.columns;
  matrix.scale_type = expert.dtype;
  matrix.bits = static_cast<int>(8 * element_bytes);
  matrix.row_bytes = static_cast<size_t>(request.columns) * element_bytes;
  const size_t bytes = static_cast<size_t>(request.rows) * matrix.row_bytes;
  // Parts that were not requested stay untouched, so that the system allocates no memory for them.
  const std::shared_ptr<std::byte[]> elements = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (element_bytes == 2) {
    transpose<2>(expert.bytes.data(), request, rows, elements.get());
  } else {
    LOCKSTEP_CHECK(element_bytes == 4);
    transpose<4>(expert.bytes.data(), request, rows, elements.get());
  }
  matrix.codes = {elements.get(), bytes};
  matrix.owner = elements;
  return matrix;
}

}  // namespace lockstep
