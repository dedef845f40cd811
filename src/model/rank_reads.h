// Which bytes of a model's files each rank of a placement reads, known without reading them: the
// loader runs over the tables of the files, with a device that keeps nothing. For nodes that keep
// their share of a model alone (node/share_fetch.h). Pure reading of the files' headers.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/piece_journal.h"
#include "base/result.h"
#include "model/open_model.h"

namespace lockstep {

struct FileReads {
  std::filesystem::path file;     // as the source opened it
  std::vector<ByteRange> ranges;  // ascending, and none beside another
};
using RankReads = std::vector<FileReads>;

// One for each share; `stages` as in EngineOptions. Where the cut depends on the links, what either
// cut reads. kNotFound, with the tensor, where a matrix is stored in a way that has to be read to
// be understood, and is not here; kInvalidArgument for shares that cannot be.
Result<std::vector<RankReads>> rank_reads(const OpenedModel& model, std::span<const double> shares,
                                          int stages);

}  // namespace lockstep
