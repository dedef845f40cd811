// PieceSource: where a piece of a file can come from: the hub (hub_client.h) or the other machines
// of a cluster (shared_source.h). A download makes one for each of its connections; one thread uses
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "hub/model_files.h"
#include "hub/range_file.h"

namespace lockstep {

struct PieceRequest {
  const HubFile& file;
  uint32_t piece = 0;
  ByteRange range;                   // of the piece in the file
  std::optional<Digest> expected{};  // where it is known already
  bool is_from_hub_alone = false;    // other machines' copies turned out to be wrong
  std::optional<Digest> rejected{};  // of the bytes that were here, when they turned out so
};

class PieceSource {
 public:
  virtual ~PieceSource() = default;

  // Fills `bytes`, which are as long as the piece. False: not now, ask again later. An error ends
  // the download.
  virtual Result<bool> fetch(const PieceRequest& request, std::span<std::byte> bytes) = 0;
  // Whether this machine is the one that is to get the piece first; those are asked for first.
  virtual bool is_own(const HubFile& /*file*/, uint32_t /*piece*/) const { return true; }
  // Whether pieces that turned out to be wrong can be had anew, from where the file comes from.
  virtual bool has_origin() const { return true; }
  // Of a file whose pieces are all here and are not the file: those that others have otherwise.
  virtual std::vector<uint32_t> suspects(const HubFile& /*file*/,
                                         std::span<const Digest> /*digests*/) {
    return {};
  }
};

}  // namespace lockstep
