// KeptStream: the events of one answer, kept for readers that come and go. Each event has a number;
// any number of readers, up to a limit, read from any event that is still here, each at its own
// pace. Nothing is written ahead for a slow reader: it gets the next piece once it has taken the
// last.
//
// The newest events are kept, up to stream_bytes_max. Events that every reader has been sent make
// room for new ones, but read_bytes_max of them stay for a reader that lost its connection. Without
// readers nothing makes room: an answer whose stream is full ends with an error, which is its last
// event. Any thread; calls the answer's `cancel` without its lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "access/access_control.h"
#include "server/streams/event_stream.h"

namespace lockstep {

inline constexpr std::string_view kStreamHeader = "x-lockstep-stream";

struct StreamLimits {
  using Clock = std::chrono::steady_clock;

  // A caller's streams, and all: running, or ended and still kept.
  size_t streams_of_caller_max = 8;
  size_t streams_max = 64;
  size_t readers_max = 8;                        // of one stream
  size_t stream_bytes_max = 8 << 20;             // of the events of one stream
  size_t read_bytes_max = 4 << 20;               // of those, sent to every reader
  size_t all_bytes_max = 256 << 20;              // of all streams together
  std::chrono::milliseconds unread_max{60'000};  // how long an answer runs without a reader
  std::chrono::milliseconds ended_max{60'000};   // how long its events stay after its end
  std::function<Clock::time_point()> now = [] { return Clock::now(); };  // tests move it
};

// For the metrics, of all streams together; also holds the bytes in use.
struct StreamCounts {
  std::atomic<size_t> bytes{0};
  std::atomic<uint64_t> resumed{0};    // readers that came later
  std::atomic<uint64_t> abandoned{0};  // answers that ended because nobody read them
  std::atomic<uint64_t> overfull{0};   // answers that ended because their stream was full
};

struct StreamFacts {
  std::string id;
  std::string model;
  uint64_t events = 0;  // so far
  bool is_done = false;
};

class KeptStream : public std::enable_shared_from_this<KeptStream> {
 public:
  struct Setup {
    std::string id;
    std::string model;
    AnswerOwner owner;
  };

  // `first` is the reader that asked for the answer.
  static std::shared_ptr<KeptStream> make(Setup setup, std::shared_ptr<const StreamLimits> limits,
                                          std::shared_ptr<StreamCounts> counts, HttpReply first);
  KeptStream(Setup setup, std::shared_ptr<const StreamLimits> limits,
             std::shared_ptr<StreamCounts> counts, HttpReply first);
  ~KeptStream();

  const AnswerOwner& owner() const { return setup_.owner; }
  StreamFacts facts() const;
  size_t readers() const;

  // The writer of the answer; an answer that is dropped without an end gets an error as its last
  // event.
  std::unique_ptr<EventStream> writer();
  // How to end the answer; called at most once.
  void on_cancel(std::function<void()> cancel);

  // The reader gets the events from number `from` on. 400 beyond the next event, 410 for one that
  // is not kept any more, 429 beyond readers_max.
  ApiResult<Ok> attach(const HttpReply& reply, uint64_t from);
  // Ends the answer, unless it has ended, with `error` as its last event.
  void end(const ApiError& error);

  // Whether readers may ask for it: its answer has not been refused, and its head is known.
  bool is_open() const;
  // Nobody has read the running answer for unread_max.
  bool is_abandoned() const;
  // Nobody reads it, and it was refused, or ended ended_max ago.
  bool is_over() const;
  // When it ended, if nobody reads it; none: it runs or is read.
  std::optional<StreamLimits::Clock::time_point> unread_end() const;

 private:
  friend class KeptWriter;
  using Time = StreamLimits::Clock::time_point;

  struct Reader {
    uint64_t number;
    HttpReply reply;
    uint64_t next;            // event to send
    bool is_sending = false;  // the socket has not accepted the last piece
  };
  using Readers = std::list<Reader>;

  // From the writer.
  void refuse(HttpResponse response);
  void open(StreamHeaders headers);
  void event(std::string_view json);
  void keep_alive();
  void done();
  std::optional<ApiError> problem() const;
  void lost();  // the writer is gone

  // All below: under the lock.
  void send_to_all(const HttpResponse& response);  // in the place of a stream
  uint64_t end_number() const { return first_ + events_.size(); }
  void add(std::string_view data);
  void make_room();
  bool is_full() const;
  void drop_oldest();
  void drop_slowest();
  void finish();
  void watch(Reader& reader);
  void leave(uint64_t reader);
  void taken(uint64_t reader);
  void send_more();
  bool send_more(Reader& reader);  // false: it has all of an ended stream and is finished

  const Setup setup_;
  const std::shared_ptr<const StreamLimits> limits_;
  const std::shared_ptr<StreamCounts> counts_;

  mutable std::mutex mutex_;
  std::function<void()> cancel_;
  // The first reader's, until the end: a running answer counts towards its client's limits, whether
  // or not the client is there.
  std::optional<HttpReply> permit_;
  std::deque<std::string> events_;
  uint64_t first_ = 0;  // number of events_.front()
  size_t bytes_ = 0;    // of events_
  Readers readers_;
  uint64_t next_reader_ = 0;
  Time unread_since_;  // while there is no reader
  Time ended_at_;
  bool is_open_ = false;
  bool is_full_ = false;  // the answer must end
  bool is_ended_ = false;
};

}  // namespace lockstep
