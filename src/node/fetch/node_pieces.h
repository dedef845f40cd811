// NodePieces: the pieces of one model that other nodes have, for a download shared with them
// (hub/shared_source.h). Asks over streams, one per node, taken from a pool or opened when needed.
// One thread uses an object; each call has a deadline. The threads of a fetch share what they learn
// of other nodes in its SharedFetch.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/shared_source.h"
#include "net/event_loop.h"
#include "node/fetch/piece_network.h"
#include "node/fetch/piece_stream.h"
#include "node/fetch/shared_fetch.h"

namespace lockstep {

class NodePieces : public PeerPieces {
 public:
  struct Options {
    EventLoop& loop;
    PieceNetwork& network;
    PieceStreamPool& streams;
    uint32_t piece_bytes = kFilePieceBytes;
    PieceStreamTimes times{};
    const std::atomic<bool>* cancelled = nullptr;
  };

  NodePieces(Options options, std::shared_ptr<SharedFetch> fetch)
      : options_(options), fetch_(std::move(fetch)) {}
  ~NodePieces() override;
  NodePieces(const NodePieces&) = delete;
  NodePieces& operator=(const NodePieces&) = delete;

  std::vector<int> alive() override;
  Result<bool> fetch(int machine, const HubFile& file, uint32_t piece, std::span<std::byte> bytes,
                     Digest& digest) override;
  Result<std::optional<Digest>> digest(int machine, const HubFile& file, uint32_t piece) override;
  bool claim(const HubFile& file, uint32_t piece) override;
  void release(const HubFile& file, uint32_t piece, bool has_come) override;

  // Asks all others what they have, and reports what this node does; true if one of them is still
  // reading its files to answer.
  bool refresh();
  // The files that the node fetches or has. kCorrupt if its answer is invalid; kNotFound.
  Result<ModelFiles> list(const NodeId& node);
  // The pieces of the model that each of the other reachable nodes keeps.
  std::map<NodeId, PieceHoldings> holdings();
  // The digests of all pieces of a file, from a node that has checked its hash; empty: none has.
  std::vector<Digest> seal(const HubFile& file);

 private:
  Result<PieceStream::Reply> ask(const NodeId& node, PieceAsk ask, size_t body_bytes_max);
  Result<PieceStream::Reply> ask_piece(int machine, PieceQuestion question, const HubFile& file,
                                       uint32_t piece, size_t body_bytes_max);
  void note_failure(const NodeId& node, const Error& error);
  bool may_go_ahead_of(int machine, const HubFile& file, uint32_t piece);

  const Options options_;
  const std::shared_ptr<SharedFetch> fetch_;
  std::map<NodeId, std::unique_ptr<PieceStream>> streams_;
};

}  // namespace lockstep
