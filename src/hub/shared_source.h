// One download for a cluster: each piece comes from the hub to one machine (piece_plan.h), and the
// others get it there. `PeerPieces` hides how machines communicate. A peer's piece is checked
// against the digest that it sends, and the whole file against the hub's hash, so wrong pieces are
// found, and by comparing digests also the machines that differ.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "hub/files/piece_source.h"
#include "hub/files/piece_store.h"

namespace lockstep {

// The other machines' stores. One thread at a time uses an implementation; each call has its own
// deadline.
class PeerPieces {
 public:
  virtual ~PeerPieces() = default;

  // Machines that can be asked now, except this one, fastest link first.
  virtual std::vector<int> alive() = 0;
  // False: the machine does not have the piece yet. An error: it could not be asked.
  virtual Result<bool> fetch(int machine, const HubFile& file, uint32_t piece,
                             std::span<std::byte> bytes, Digest& digest) = 0;
  // The digest of a piece that the machine has.
  virtual Result<std::optional<Digest>> digest(int machine, const HubFile& file,
                                               uint32_t piece) = 0;

  // Called before this machine gets a piece from the hub: false if another is getting it, or about
  // to. release() reports whether it has arrived; it will be in the store in a moment.
  virtual bool claim(const HubFile& /*file*/, uint32_t /*piece*/) { return true; }
  virtual void release(const HubFile& /*file*/, uint32_t /*piece*/, bool /*has_come*/) {}
};

struct SharedSourceOptions {
  int self = 0;
  // The machines that may fetch the piece from the hub: those that keep it.
  std::function<std::vector<int>(const HubFile&, uint32_t piece)> keepers;
};

// `hub` may be null: nothing is fetched from outside. One thread uses an object.
class SharedSource : public PieceSource {
 public:
  SharedSource(SharedSourceOptions options, std::unique_ptr<PeerPieces> peers,
               std::unique_ptr<PieceSource> hub);

  Result<bool> fetch(const PieceRequest& request, std::span<std::byte> bytes) override;
  bool is_own(const HubFile& file, uint32_t piece) const override;
  bool has_origin() const override { return hub_ && hub_->has_origin(); }
  // Pieces that differ on another machine.
  std::vector<uint32_t> suspects(const HubFile& file, std::span<const Digest> digests) override;

 private:
  Result<bool> fetch_from_hub(const PieceRequest& request, std::span<std::byte> bytes);
  int fetcher(const HubFile& file, uint32_t piece, const std::vector<int>& alive) const;

  const SharedSourceOptions options_;
  const std::unique_ptr<PeerPieces> peers_;
  const std::unique_ptr<PieceSource> hub_;
};

// Checks a file of which this machine keeps a part: reads all pieces in order, its own from disk
// and the others from its peers, without keeping them, and stores their digests if the whole has
// the hub's hash. kCorrupt if not, kPeerLost if no machine provides a piece.
Status seal_file(PieceStore& store, const HubFile& file, PeerPieces& peers);

}  // namespace lockstep
