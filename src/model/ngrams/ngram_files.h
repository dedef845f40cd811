// NgramFiles: a rank's rows of a table of n-grams that stays in the model's files
// (NgramConfig::is_on_disk). A token needs a few short rows of many gigabytes, so the system reads
// these alone, and keeps in free memory what it likes. The values are those of the table in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ngrams/ngram_config.h"
#include "tensor/stored_matrix.h"
#include "weights/weight_source.h"

namespace lockstep {

class NgramFiles {
 public:
  // The rows that a rank has of each part.
  struct OwnRows {
    int begin = 0;
    int count = 0;
  };

  // `names`: of the parts, in order. kUnsupported for parts that are converted while they are read.
  // kNotFound if a file has not all of the rank's rows. A code that is no number, for which a table
  // is refused in memory, becomes a NaN of its token.
  static Result<NgramFiles> open(std::shared_ptr<const WeightSource> source,
                                 const NgramConfig& config, std::span<const std::string> names,
                                 OwnRows own);

  // Appends the rows to `values`: row r is row r % own.count of the rank's rows of part
  // r / own.count. The system is told all rows before the first is waited for. A disk that fails
  // ends the process (base/files/mapped_file.h).
  void append(std::span<const int32_t> rows, std::vector<float>& values) const;

 private:
  NgramFiles(std::shared_ptr<const WeightSource> source, OwnRows own)
      : source_(std::move(source)), own_(own) {}

  std::shared_ptr<const WeightSource> source_;  // has the files
  OwnRows own_;
  std::vector<StoredMatrix> parts_;
};

}  // namespace lockstep
