// NodeStream: one request to a node whose answer arrives in pieces, read by a thread that may wait
// for them only for a while: an answer of a model, /cluster/events. Destroying it closes the
// connection, which cancels the request. Used by `lockstep run` and `lockstep top`; one thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/client/node_client.h"
#include "net/event_loop.h"
#include "net/http/http_stream.h"

namespace lockstep {

class NodeStream {
 public:
  // The node may be silent for as long as it sends nothing at all, not even its comments: a long
  // prompt, a model that loads.
  static constexpr std::chrono::seconds kSilenceMax{60};
  static constexpr size_t kErrorBytesMax = 64 << 10;  // of a refusal

  enum class Kind {
    kNothing,  // within the time
    kPiece,
    kEnd,
    kFailure,
  };
  struct Step {
    Kind kind = Kind::kNothing;
    std::string piece;
    std::optional<Error> error;  // of kFailure; a refusal has the node's sentence
  };

  // `call` needs a method, a target and a body; the rest is added. `with_control`: also the proof
  // that this user may control the node, if it can be made. Does not wait; the proof is asked for
  // on the own thread, and the destructor waits for its end.
  NodeStream(const NodeFlags& flags, HttpCall call, bool with_control = false);
  ~NodeStream();
  NodeStream(const NodeStream&) = delete;
  NodeStream& operator=(const NodeStream&) = delete;

  // Waits at most this long. After kEnd or kFailure there is nothing more.
  Step next(std::chrono::milliseconds limit);
  bool has_begun() const { return has_begun_; }  // a part of an answer has come

 private:
  struct Mailbox;

  bool has_begun_ = false;
  std::shared_ptr<Mailbox> mailbox_;
  std::unique_ptr<EventLoop> loop_;
  HttpStream stream_;  // loop's thread
};

}  // namespace lockstep
