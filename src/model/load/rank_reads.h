// Which bytes of a model's files each rank of a placement reads, without reading them: the loader
// runs over the files' tables with a device that stores nothing. For nodes that fetch only their
// share of a model (node/fetch/model_fetch_parts.cc). Reads only the files' headers.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/files/piece_journal.h"
#include "base/result.h"
#include "model/load/open_model.h"

namespace lockstep {

struct FileReads {
  std::filesystem::path file;     // as opened by the source
  std::vector<ByteRange> ranges;  // ascending, adjacent ones merged
};
using RankReads = std::vector<FileReads>;

// One per share; `stages` as in LinkOptions. If the cut depends on the links, includes the reads
// of both possible cuts. kNotFound, with the tensor, if a matrix must be read to determine its
// layout and is missing; kInvalidArgument for invalid shares.
Result<std::vector<RankReads>> rank_reads(OpenedModel model, std::span<const double> shares,
                                          int stages);

}  // namespace lockstep
