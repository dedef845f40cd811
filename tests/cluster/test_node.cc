// A node with only its peers, for tests/cluster/network_test.py. It prints events as one JSON
// object per line, and takes commands from standard input:
//
//   send TEXT        to all
//   stream WORD      a stream to each connected node, with a frame of 200 KB of the word
//   report           prints counts
//   pin              prints the PINs that are shown
//   (end of input)   exits
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cluster/identity.h"
#include "cluster/join/join_cluster.h"
#include "cluster/peers/peers.h"
#include "json/json.h"
#include "net/event_loop.h"

using namespace lockstep;

namespace {

void tell(const JsonObject& event) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << dump_json(event) << std::endl;
}

int fail(const std::string& message) {
  tell({{"event", "error"}, {"message", message}});
  return 1;
}

struct Arguments {
  std::string home, name, cluster_key;  // no key: joins with a PIN
  Peers::Options options{.version = "0.1.0-test"};
};

Result<Arguments> parse(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string flag = values[i], value = values[i + 1];
    if (flag == "--home") arguments.home = value;
    if (flag == "--name") arguments.name = value;
    if (flag == "--cluster-key") arguments.cluster_key = value;
    if (flag == "--beacon") arguments.options.uses_beacon = value == "yes";
    if (flag == "--protocol") {
      const auto number = static_cast<uint16_t>(std::stoi(value));
      arguments.options.protocols = {number, number};
    }
    if (flag == "--join") {
      arguments.options.join.push_back(TRY(parse_net_address(value, Peers::kControlPort)));
    }
  }
  return arguments;
}

// Without a key: asks the first node it hears from, with a PIN from standard input.
Result<ClusterKey> ask_for_key(EventLoop& loop, const Identity& identity,
                               const Arguments& arguments) {
  const auto seen = TRY(find_clusters(loop, identity, {}, std::chrono::milliseconds(5'000), true));
  if (seen.empty()) return Error{ErrorCode::kNotFound, "no cluster was heard"};
  JoinRequest request{.address = seen[0].address, .version = arguments.options.version};
  request.ask_pin = [](const JoinRequest::Offer& offer) -> std::optional<std::string> {
    tell({{"event", "asked"}, {"by", offer.node_name}});
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  };
  return join_cluster(loop, identity, request);
}

class Node {
 public:
  Peers::Events events() {
    return {
        .on_connected =
            [this](const Peer& peer) {
              {
                const std::lock_guard lock(mutex_);
                names_[peer.id] = peer.name;
              }
              tell({{"event", "connected"}, {"name", peer.name}, {"address", peer.address.text()}});
            },
        .on_message =
            [this](const NodeId& id, const std::string& text) {
              tell({{"event", "message"}, {"name", name(id)}, {"bytes", text.size()}});
            },
        .on_lost =
            [this](const NodeId& id, const Error& error) {
              tell({{"event", "lost"}, {"name", name(id)}, {"reason", error.message}});
            },
        .on_stream =
            [this](const NodeId& id, const Channel&, FrameConnection connection) {
              connection.set_events({.on_frame = [this, id](const std::string& frame) {
                tell({{"event", "stream"}, {"name", name(id)}, {"bytes", frame.size()}});
              }});
            }};
  }

  void obey(Peers& peers, const std::string& line) {
    if (line.starts_with("send ")) peers.send_to_all(line.substr(5));
    if (line.starts_with("stream ")) {
      std::string frame;
      const std::string word = line.substr(7);
      while (frame.size() < 200'000) frame += word + " ";
      for (const Peer& peer : peers.report().connected) {
        peers.open_stream(peer.id, {.kind = "pieces", .purpose = word},
                          [frame](Result<FrameConnection> ready) {
                            if (ready.ok()) ready.value().send(frame);
                          });
      }
    }
    if (line == "report") tell_report(peers.report());
    if (line == "pin") {
      for (const auto& pin : peers.report().pins) tell({{"event", "pin"}, {"pin", pin.pin}});
    }
  }

 private:
  static void tell_report(const Peers::Report& report) {
    JsonArray connected, unusable;
    for (const Peer& peer : report.connected) connected.emplace_back(peer.name);
    for (const auto& one : report.unusable) {
      unusable.push_back(JsonObject{{"name", one.peer.name}, {"reason", one.reason}});
    }
    tell({{"event", "report"},
          {"connected", std::move(connected)},
          {"unusable", std::move(unusable)},
          {"absent", report.absent.size()},
          {"other_clusters", report.other_cluster_count},
          {"strangers", report.strangers_refused},
          {"replayed", report.beacons.replayed},
          {"forged", report.beacons.forged},
          {"malformed", report.beacons.malformed}});
  }
  std::string name(const NodeId& id) {
    const std::lock_guard lock(mutex_);
    return names_[id];
  }

  std::mutex mutex_;
  std::map<NodeId, std::string> names_;
};

int run(const Arguments& arguments) {
  auto identity = Identity::open(arguments.home, arguments.name);
  if (!identity.ok()) return fail(identity.error().message);
  const auto loop = EventLoop::start();
  const auto key = arguments.cluster_key.empty() ? ask_for_key(*loop, identity.value(), arguments)
                                                 : ClusterKey::parse(arguments.cluster_key);
  if (!key.ok()) return fail(key.error().message);
  if (const auto joined = identity.value().join_cluster(key.value()); !joined.ok()) {
    return fail(joined.error().message);
  }
  Node node;
  auto peers = Peers::start(*loop, identity.value(), arguments.options, node.events());
  if (!peers.ok()) return fail(peers.error().message);
  tell({{"event", "started"}, {"id", identity.value().id().text()}});
  std::string line;
  while (std::getline(std::cin, line)) node.obey(*peers.value(), line);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  const auto arguments = parse(count, values);
  return arguments.ok() ? run(arguments.value()) : fail(arguments.error().message);
}
