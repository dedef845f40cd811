// EventHub: the streams of GET /cluster/events (server-sent events). A publisher
// (server/operations/status_watch.h) gives it the members of the status as JSON texts; each text is
// made once, however many streams there are. A stream gets a snapshot, then the members that have
// changed since its last write, what has happened, and the newest meters.
//
// A stream has at most one write that its client has not taken. Until then changes are not queued:
// the next write has the members' last values. So a slow reader costs one status, and the client
// ends by the connection's own deadline. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "access/api_error.h"
#include "json/json.h"
#include "net/http/http_server.h"
#include "server/request/housekeeper.h"

namespace lockstep {

// A member of the status. It has changed when `key` has: `text` may also have values that move all
// the time, which the meters carry.
struct EventMember {
  std::string text;  // JSON
  std::string key;
  bool is_for_control = false;  // only for callers with control
};
using EventMembers = std::map<std::string, EventMember, std::less<>>;

class EventHub : public Housekeeper::Watched, public std::enable_shared_from_this<EventHub> {
 public:
  using Clock = Housekeeper::Clock;

  static constexpr size_t kStreamsMax = 1024;
  // Some of these are for programs on this machine.
  static constexpr size_t kStreamsReserved = 64;
  // The last happenings are in the snapshot.
  static constexpr size_t kHappenedMax = 100;

  // The rights of a stream's client now: a key may be removed, a session may end.
  struct Permission {
    bool may_look = false;
    bool has_control = false;
  };
  struct Client {
    HttpReply reply;
    bool is_from_this_machine = false;
    std::function<Permission()> permission;  // any thread, while the hub exists
  };

  // A stream silent for this long gets a comment, if someone calls on_tick().
  explicit EventHub(std::chrono::milliseconds silence_max) : silence_max_(silence_max) {}
  // Called, from any thread, when a stream is added: it waits for the next send().
  void set_on_added(std::function<void()> on_added);

  // Begins the answer. 503 with Retry-After beyond kStreamsMax and after close().
  ApiResult<Ok> add(Client client);

  // The whole status: a member that is left out is gone.
  void publish(EventMembers members);
  // {"at_ms", "kind", "sentence"}
  void happened(int64_t at_ms, std::string_view kind, std::string_view sentence);
  JsonArray happened() const;  // the oldest first
  void set_meters(std::string json);
  // Asks for the permission of each stream, and ends those that have lost it.
  void check_permissions();
  // Writes to each stream that has taken its last write what is new for it.
  void send(Clock::time_point now);
  void on_tick(Clock::time_point now) override;

  size_t stream_count() const;
  // Ends all streams; add() refuses.
  void close();

 private:
  struct Member {
    EventMember value;
    uint64_t version = 0;  // of the status in which it changed last
    bool is_gone = false;
  };
  struct Stream {
    Client client;
    bool has_control = false;
    bool has_snapshot = false;
    bool is_writing = false;  // the last write has not been taken
    uint64_t version = 0;     // of the status that it has
    uint64_t happened = 0;    // the number of the last happening that it has
    uint64_t meters = 0;
    Clock::time_point written;
  };
  struct Happened {
    uint64_t number = 0;
    JsonObject json;
  };

  void on_taken(uint64_t number);
  void remove(uint64_t number);
  void write(uint64_t number, Stream& stream, std::string piece, Clock::time_point now);
  JsonArray happened_list() const;
  std::string next_piece(Stream& stream);
  const std::string& snapshot(bool has_control);
  const std::string& change(uint64_t version, bool has_control);
  std::string change_text(uint64_t version, bool has_control) const;

  const std::chrono::milliseconds silence_max_;
  mutable std::mutex mutex_;  // guards what follows
  std::function<void()> on_added_;
  bool is_closed_ = false;
  uint64_t next_stream_ = 1;
  std::map<uint64_t, Stream> streams_;
  uint64_t version_ = 0;  // 0: no status yet
  std::map<std::string, Member, std::less<>> members_;
  std::deque<Happened> happened_;
  uint64_t last_happened_ = 0;
  std::string meters_;  // the event
  uint64_t meters_number_ = 0;
  // Texts of this status, by whether the caller has control and, of changes, by the version before.
  std::map<bool, std::string> snapshots_;
  std::map<std::pair<uint64_t, bool>, std::string> changes_;
};

}  // namespace lockstep
