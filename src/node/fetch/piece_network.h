// PieceNetwork: the cluster's connections as the exchange of pieces needs them; Peers as one.
#pragma once

#include <functional>
#include <vector>

#include "cluster/peers/peers.h"

namespace lockstep {

class PieceNetwork {
 public:
  virtual ~PieceNetwork() = default;
  // The nodes that can be asked now. Any thread.
  virtual std::vector<NodeId> connected() = 0;
  // A node that is not connected may be so in a moment: it was lost just now, or this node has just
  // started. Any thread.
  virtual bool is_one_expected() { return false; }
  // As Peers::open_stream(). Any thread.
  virtual void open_stream(const NodeId& node, const Channel& channel,
                           std::function<void(Result<FrameConnection>)> ready) = 0;
  // Its owner's name for it, for messages. Any thread.
  virtual std::string name_of(const NodeId& node) { return node.short_text(); }
};

class PeersNetwork final : public PieceNetwork {
 public:
  // Must outlive it.
  explicit PeersNetwork(Peers& peers) : peers_(peers) {}

  std::vector<NodeId> connected() override {
    std::vector<NodeId> nodes;
    for (const Peer& peer : peers_.report().connected) nodes.push_back(peer.id);
    return nodes;
  }
  bool is_one_expected() override { return peers_.report().is_one_expected; }
  void open_stream(const NodeId& node, const Channel& channel,
                   std::function<void(Result<FrameConnection>)> ready) override {
    peers_.open_stream(node, channel, std::move(ready));
  }
  std::string name_of(const NodeId& node) override { return peers_.name_of(node); }

 private:
  Peers& peers_;
};

}  // namespace lockstep
