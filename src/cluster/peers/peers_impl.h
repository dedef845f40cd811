// The implementation of Peers, only for cluster/peers*.cc; everything belongs to the loop's thread.
//
//   peers.cc          start and end, callers and calls up to the greeting
// connections of members: control frames, streams, status
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/discovery/address_book.h"
#include "cluster/discovery/beacon.h"
#include "cluster/join/join_host.h"
#include "cluster/peers/peers.h"
#include "net/frames/frame_call.h"
#include "net/frames/frame_server.h"
#include "net/frames/tls_identity.h"

namespace lockstep {

struct Peers::Impl : std::enable_shared_from_this<Impl> {
  using Clock = std::chrono::steady_clock;
  using StreamReady = std::function<void(Result<FrameConnection>)>;

  static constexpr const char* kPeersFile = "peers.json";  // in the cluster's folder of the node

  // A call in flight: to connect a node, or to open a stream.
  struct Call {
    AddressBook::Target target;
    FrameCall call;
    FrameConnection connection;  // once there is one
    NodeId id;                   // of the node there, once it has proved itself
    bool is_committed = false;   // we have accepted this connection
    StreamReady ready;           // if it is for a stream
  };
  struct Connected {
    Peer peer;
    uint64_t number = 0;  // distinguishes successive connections with a node
    FrameConnection connection;
    std::vector<FrameConnection> streams;
    std::deque<Clock::duration> round_trips;  // the latest ones
  };
  struct UnusableNode {
    Unusable unusable;
    Clock::time_point noted_at;
  };

  Impl(EventLoop& own_loop, const Identity& own_identity, Options chosen, Events handlers,
       TlsIdentity own_tls, Greeting::Own greeting, JoinHost::Options join)
      : loop(own_loop),
        identity(own_identity),
        options(std::move(chosen)),
        events(std::move(handlers)),
        tls(std::move(own_tls)),
        own(std::move(greeting)),
        join_host(std::move(join)),
        book(identity.id()) {}

  Status open();
  void close();

  void on_caller(FrameConnection connection);
  void greet_caller(FrameConnection connection, std::string_view first_frame);
  Status judge_caller(const NodeDetails& details, const Channel& channel);
  void on_sighting(const Beacon::Sighting& sighting);

  void call_due();
  void set_call_timer();
  uint64_t start_call(Call call, const Channel& channel);
  void on_called(uint64_t number, const Channel& channel, Result<FrameConnection> result);
  Status judge_called(uint64_t number, const NodeDetails& details, const Channel& channel);
  void on_greeted(uint64_t number, FrameConnection connection, const Greeting::Outcome& outcome);
  void on_call_failed(uint64_t number, const Error& error);
  void give_up_calls_to(const NodeId& id);

  void establish(FrameConnection connection, const NodeDetails& details, const NetAddress& address,
                 const AddressBook::Target* target);
  void on_frame(const NodeId& id, uint64_t number, std::string frame);
  void on_closed(const NodeId& id, uint64_t number, const Error& error);
  void lose(const NodeId& id, const Error& error);
  void send_control(const NodeId& id, char kind, std::string_view body);
  void ping();
  void on_ping_answer(Connected& peer, std::string_view sent);
  void introduce(const Peer& newcomer);
  void on_introductions(const NodeId& from, std::string_view json);
  void open_stream(const NodeId& id, const Channel& channel, StreamReady ready);
  Status keep_stream(const NodeId& id, FrameConnection& stream);
  void note_unusable(Peer peer, std::string reason);
  void note_stranger(const FrameConnection& connection, const Error& error);
  void remember();
  Report report();

  EventLoop& loop;
  Identity identity;
  Options options;
  Events events;
  TlsIdentity tls;
  Greeting::Own own;
  JoinHost join_host;
  AddressBook book;
  std::unique_ptr<FrameServer> server;
  std::unique_ptr<Beacon> beacon;
  std::string beacon_problem;
  std::map<uint64_t, Call> calls;
  std::map<NodeId, Connected> connected;
  std::map<NodeId, UnusableNode> unusable;
  uint64_t next_number = 1;
  uint64_t strangers_refused = 0;
  Clock::time_point stranger_logged_at;
  std::string remembered;  // the content of the file
  EventLoop::Timer call_timer, ping_timer;
};

}  // namespace lockstep
