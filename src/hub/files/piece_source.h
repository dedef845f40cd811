// PieceSource: a source of pieces: the hub (hub_client.h) or the other machines of a cluster
// (shared_source.h). A download makes one for each of its connections; one thread uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "hub/files/model_files.h"
#include "hub/files/range_file.h"

namespace lockstep {

struct PieceRequest {
  const HubFile& file;
  uint32_t piece = 0;
  ByteRange range;                   // of the piece in the file
  std::optional<Digest> expected{};  // if known already
  bool is_from_hub_alone = false;    // other machines' copies were wrong
  std::optional<Digest> rejected{};  // of the bytes here, if they were wrong
};

class PieceSource {
 public:
  virtual ~PieceSource() = default;

  // Fills `bytes`, whose size is the piece's. False: not now, retry later. An error ends the
  // download.
  virtual Result<bool> fetch(const PieceRequest& request, std::span<std::byte> bytes) = 0;
  // Whether this machine is to get the piece first; such pieces are requested first.
  virtual bool is_own(const HubFile& /*file*/, uint32_t /*piece*/) const { return true; }
  // Whether wrong pieces can be fetched again from the file's origin.
  virtual bool has_origin() const { return true; }
  // For a file whose pieces are all here but fail the check: those that differ on other machines.
  virtual std::vector<uint32_t> suspects(const HubFile& /*file*/,
                                         std::span<const Digest> /*digests*/) {
    return {};
  }
};

}  // namespace lockstep
