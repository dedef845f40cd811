#include "model/ngrams/ngram_files.h"

#include <fmt/core.h>

#include <utility>

#include "base/files/mapped_file.h"
#include "tensor/stored_check.h"
#include "tensor/stored_ranges.h"
#include "tensor/stored_rows.h"

namespace lockstep {
namespace {

Status check_form(const std::string& name, const StoredMatrix& stored) {
  TRY(check_stored_matrix(stored));
  if (stored.is_mapped_file) return Ok{};
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("{} is converted while it is read and cannot stay on the disk; leave out "
                  "--ngrams-on-disk",
                  name)};
}

}  // namespace

Result<NgramFiles> NgramFiles::open(std::shared_ptr<const WeightSource> source,
                                    const NgramConfig& config, std::span<const std::string> names,
                                    OwnRows own) {
  NgramFiles files(std::move(source), own);
  if (own.count == 0) return files;
  for (const std::string& name : names) {
    StoredMatrix stored = TRY(files.source_->matrix({.name = name,
                                                     .rows = config.part_rows,
                                                     .columns = config.row,
                                                     .row_begin = own.begin,
                                                     .row_end = own.begin + own.count}));
    TRY(check_form(name, stored));
    for (const auto& bytes : stored_ranges(stored, {own.begin, own.count, 0, config.row})) {
      TRY(files.source_->need(bytes));
      expect_scattered_reads(bytes);
    }
    files.parts_.push_back(std::move(stored));
  }
  return files;
}

void NgramFiles::append(std::span<const int32_t> rows, std::vector<float>& values) const {
  const auto each = [&](const auto& use) {
    for (const int32_t row : rows) {
      use(parts_[static_cast<size_t>(row / own_.count)], own_.begin + row % own_.count);
    }
  };
  each([](const StoredMatrix& part, int row) {
    for (const auto& bytes : stored_ranges(part, {row, 1, 0, part.columns})) read_ahead(bytes);
  });
  each([&](const StoredMatrix& part, int row) {
    const size_t begin = values.size(), columns = static_cast<size_t>(part.columns);
    values.resize(begin + columns);
    dequantise_row(part, row, 0, std::span(values).subspan(begin, columns));
  });
}

}  // namespace lockstep
