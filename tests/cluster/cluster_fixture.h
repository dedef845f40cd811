// Nodes of a cluster in one test process, over loopback: identities in temporary folders, a loop,
// and the events that each node saw, which the test waits for.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/identity.h"
#include "cluster/peers/peers.h"
#include "net/event_loop.h"
#include "support/comes_true.h"
#include "support/temporary_folder.h"

namespace lockstep {

inline constexpr std::chrono::seconds kPatience{20};  // for a busy machine

inline Identity open_identity(const TemporaryFolder& folder, const std::string& name) {
  auto identity = Identity::open(folder.path() / name, name);
  REQUIRE_MESSAGE(identity.ok(), (identity.ok() ? "" : identity.error().message));
  return std::move(identity.value());
}

inline Identity member_identity(const TemporaryFolder& folder, const std::string& name,
                                const ClusterKey& key) {
  Identity identity = open_identity(folder, name);
  REQUIRE(identity.join_cluster(key).ok());
  return identity;
}

inline ClusterKey new_cluster() {
  auto key = ClusterKey::generate();
  REQUIRE(key.ok());
  return key.value();
}

// The events that one node saw, in order: "+name", "-name", "name: text".
class Diary {
 public:
  Peers::Events events() {
    return {.on_connected =
                [this](const Peer& peer) {
                  {
                    const std::lock_guard lock(mutex_);
                    names_[peer.id] = peer.name;
                  }
                  add("+" + peer.name);
                },
            .on_message = [this](const NodeId& id,
                                 const std::string& text) { add(name(id) + ": " + text); },
            .on_lost = [this](const NodeId& id, const Error&) { add("-" + name(id)); },
            .on_stream = {}};
  }
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
  }
  // Waits until the line has come `count` times; false at the time-out.
  bool waits_for(const std::string& line, int count = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return count_locked(line) >= count; });
  }
  int count(const std::string& line) {
    const std::lock_guard lock(mutex_);
    return count_locked(line);
  }

 private:
  int count_locked(const std::string& line) const {
    return static_cast<int>(std::count(lines_.begin(), lines_.end(), line));
  }
  std::string name(const NodeId& id) {
    const std::lock_guard lock(mutex_);
    return names_[id];
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  std::map<NodeId, std::string> names_;
};

inline Peers::Options local_options(std::vector<NetAddress> join = {}) {
  return {.host = "127.0.0.1",
          .port = 0,
          .uses_beacon = false,
          .join = std::move(join),
          .version = "0.1.0-test"};
}

// A node with its own loop.
struct TestNode {
  TestNode(const Identity& own, Peers::Options options, Peers::Events events) : identity(own) {
    loop = EventLoop::start();
    auto started = Peers::start(*loop, identity, options, std::move(events));
    REQUIRE_MESSAGE(started.ok(), (started.ok() ? "" : started.error().message));
    peers = std::move(started.value());
  }
  TestNode(const Identity& own, const Peers::Options& options) : TestNode(own, options, {}) {}

  NetAddress address() const { return {"127.0.0.1", peers->port()}; }

  Identity identity;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<Peers> peers;
};

}  // namespace lockstep
