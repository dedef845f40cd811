// JoinHost: the cluster node's end of a join. It shows a PIN for a machine that asks with one,
// checks tokens, and sends the cluster's key to machines that have proved themselves. A stranger
// can at most make it show a PIN (few, see cluster/join/pin_desk.h) and be refused. Loop's thread
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/cluster_key.h"
#include "cluster/join/pin_desk.h"
#include "net/frames/frame_connection.h"

namespace lockstep {

class JoinHost {
 public:
  struct Options {
    PublicKey key{};   // of this node's certificate
    std::string name;  // of this node
    ClusterKey cluster;
    std::function<uint64_t()> wall_clock_s;  // since 1970; empty: the system's
  };

  explicit JoinHost(Options options);
  ~JoinHost();

  // With the first frame, of kind kJoin.
  void take(FrameConnection connection, std::string_view first_frame);
  // PINs to be shown now.
  std::vector<PinDesk::Pending> pending_pins();
  uint64_t joined_count() const;
  uint64_t refused_count() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep
