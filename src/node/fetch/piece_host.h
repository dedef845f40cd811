// PieceHost: answers other nodes' questions for pieces of models (node/fetch/piece_frames.h), from
// the models on this machine's disk and from fetches in flight. Askers are members of the cluster,
// but their questions are checked all the same: only files in this node's own lists are given away.
// Its own threads read the disk.
#pragma once

#include <cstdint>
#include <memory>

#include "cluster/node_id.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "node/fetch/local_models.h"
#include "node/fetch/shared_fetch.h"

namespace lockstep {

class PieceHost {
 public:
  static constexpr size_t kStreamsMax = 512;  // of all nodes; others are closed
  static constexpr size_t kBodiesMax = 16;    // pieces in memory; further questions wait
  static constexpr int kReaderCount = 3;

  // All must outlive it. `takes_copies`: this node keeps shares of models, and copies of others.
  PieceHost(EventLoop& loop, LocalModels& local_models, FetchBoard& board,
            bool takes_copies = false);
  // Closes the streams. Not from the loop's thread.
  ~PieceHost();

  // Loop's thread: a stream of kind kPieceChannel that another node has opened. The first invalid
  // frame closes it.
  void on_stream(const NodeId& from, FrameConnection connection);

 private:
  struct Impl;
  EventLoop& loop_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
