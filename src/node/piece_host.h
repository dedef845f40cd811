// PieceHost: answers other nodes' questions for pieces of models (node/piece_frames.h), from the
// models on this machine's disk and from what is being fetched. Who asks is a member of the
// cluster; what it asks is checked all the same: only files of the lists that this node has itself
// are given away. The disk is read by threads of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "cluster/node_id.h"
#include "net/event_loop.h"
#include "net/frame_connection.h"
#include "node/model_shelf.h"
#include "node/shared_fetch.h"

namespace lockstep {

class PieceHost {
 public:
  static constexpr size_t kStreamsMax = 512;  // of all nodes; further ones are closed
  static constexpr size_t kBodiesMax = 16;    // pieces in memory; further questions wait
  static constexpr int kReaderCount = 3;

  // All must outlive it. `takes_copies`: this node keeps shares of models, and copies of others'.
  PieceHost(EventLoop& loop, ModelShelf& shelf, FetchBoard& board, bool takes_copies = false);
  // Closes the streams. Not from the loop's thread.
  ~PieceHost();

  // Loop's thread: a stream of kind kPieceChannel that another node has opened. It is closed at the
  // first frame that makes no sense.
  void on_stream(const NodeId& from, FrameConnection connection);

 private:
  struct Impl;
  EventLoop& loop_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
