// The first frames of a connection between two nodes: each proves that it is a member of the
// cluster, and says which node it is. A proof is a MAC, with a key derived from the cluster's, over
// a secret of this TLS session, both ends' certificates and the versions: it is worthless in
// another session, so neither a recording nor a machine in the middle can use it. Names are sent
// only after the other end has proved itself; a stranger learns only that lockstep runs here.
//
//   caller:   "LSG1" 'M' | protocols | proof
//   listener: protocols | proof | details          (a stranger is closed without an answer)
//   caller:   details, with the channel wanted
//   listener: verdict
// Details and verdict are JSON, so that later versions may extend them. Loop's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/cluster_key.h"
#include "cluster/node_id.h"
#include "cluster/protocol.h"
#include "net/frames/frame_connection.h"

namespace lockstep {

// The purpose of a call, by the beginning of its first frame.
enum class FirstFrame { kMember, kJoin, kUnknown };
FirstFrame first_frame_kind(std::string_view frame);
std::string first_frame_prefix(FirstFrame kind);

struct NodeDetails {
  NodeId id;  // from its certificate, not from its claims
  std::string name;
  std::string version;  // of the program
  ProtocolRange protocols;
  uint16_t control_port = 0;
  uint64_t run = 0;  // random, one for each run of the process
};

// The purpose of a connection: the one control channel between two nodes, or a separate stream.
struct Channel {
  static constexpr const char* kControl = "control";
  static constexpr size_t kKindBytesMax = 32;
  static constexpr size_t kPurposeBytesMax = 1024;
  std::string kind = kControl;
  std::string purpose;  // depends on the kind, for example which file

  bool is_control() const { return kind == kControl; }
};

class Greeting : public std::enable_shared_from_this<Greeting> {
 public:
  static constexpr const char* kPurpose = "greeting";

  struct Own {
    PublicKey key;
    Digest secret;  // ClusterKey::derive(kPurpose)
    NodeDetails details;
  };
  struct Outcome {
    // Proved: both ends are members. `details` and `channel` are valid from then on.
    bool is_member = false;
    NodeDetails details;
    Channel channel;
    // kUnsupported: incompatible versions. kCancelled: the judge of one end refused.
    // kInvalidArgument: not a member of this cluster.
    Status status = Ok{};
  };
  // Called once the other end has proved itself, before this end commits itself; an error refuses.
  using Judge = std::function<Status(const NodeDetails&, const Channel&)>;
  // Called once. If the status is ok the connection is trusted and open, and needs events.
  using Done = std::function<void(FrameConnection, Outcome)>;

  // The calling end. `expected`: the node that should be there, if known.
  static void call(FrameConnection connection, const Own& own, const Channel& channel,
                   std::optional<NodeId> expected, Judge judge, Done done);
  // The called end, with the first frame, of kind kMember.
  static void answer(FrameConnection connection, const Own& own, std::string_view first_frame,
                     Judge judge, Done done);

 private:
  Greeting(FrameConnection connection, const Own& own, Judge judge, Done done)
      : connection_(std::move(connection)),
        own_(own),
        judge_(std::move(judge)),
        done_(std::move(done)) {}

  void start_call(std::optional<NodeId> expected);
  void start_answer(std::string_view first_frame);
  void expect(void (Greeting::*step)(std::string_view));
  void on_listener_proof(std::string_view frame);
  void on_caller_details(std::string_view frame);
  void on_verdict(std::string_view frame);

  Result<Digest> proof(bool of_caller, const ProtocolRange& range) const;
  Status check_proof(bool of_caller, std::string_view range_and_proof);
  Status check_protocols() const;
  std::string own_details() const;
  Status read_details(std::string_view json);
  void refuse(Error error);
  void finish(Status status);

  FrameConnection connection_;
  Own own_;
  Judge judge_;
  Done done_;
  bool is_caller_ = false;
  Outcome outcome_;
};

}  // namespace lockstep
