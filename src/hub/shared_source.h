// One download for a cluster: each piece comes from the hub to one machine (piece_plan.h), and the
// others get it there. How machines talk is not known here: that is `PeerPieces`. What a peer sends
// is checked against the digest that it names, and the whole file against the hub's hash, so that a
// wrong piece is found, and by comparing digests also who else has it otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "hub/piece_source.h"
#include "hub/piece_store.h"

namespace lockstep {

// The other machines' stores. Implementations are used by one thread at a time; each call has a
// deadline of its own.
class PeerPieces {
 public:
  virtual ~PeerPieces() = default;

  // Those that can be asked now, without this one, the fastest link first.
  virtual std::vector<int> alive() = 0;
  // False: the machine does not have the piece (yet). An error: it could not be asked.
  virtual Result<bool> fetch(int machine, const HubFile& file, uint32_t piece,
                             std::span<std::byte> bytes, Digest& digest) = 0;
  // Of a piece that the machine has.
  virtual Result<std::optional<Digest>> digest(int machine, const HubFile& file,
                                               uint32_t piece) = 0;

  // Asked before this machine gets a piece from the hub: false where another is getting it, or
  // about to. Told afterwards whether it has come; it will be in the store in a moment.
  virtual bool claim(const HubFile& /*file*/, uint32_t /*piece*/) { return true; }
  virtual void release(const HubFile& /*file*/, uint32_t /*piece*/, bool /*has_come*/) {}
};

struct SharedSourceOptions {
  int self = 0;
  // Who may fetch the piece from the hub, of all machines: those that keep it.
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
  // Pieces of which another machine has other bytes.
  std::vector<uint32_t> suspects(const HubFile& file, std::span<const Digest> digests) override;

 private:
  Result<bool> fetch_from_hub(const PieceRequest& request, std::span<std::byte> bytes);
  int fetcher(const HubFile& file, uint32_t piece, const std::vector<int>& alive) const;

  const SharedSourceOptions options_;
  const std::unique_ptr<PeerPieces> peers_;
  const std::unique_ptr<PieceSource> hub_;
};

// Checks a file of which this machine keeps a part: reads all pieces in order, its own from the
// disk and the others from its peers, which are not kept, and remembers their digests if the whole
// is what the hub lists. kCorrupt if it is not, kPeerLost where a piece cannot be had from anyone.
Status seal_file(PieceStore& store, const HubFile& file, PeerPieces& peers);

}  // namespace lockstep
