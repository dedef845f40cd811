// RequestDecoder: decodes the requests of a stream in a thread of its own, one after the other, so
// that a long one delays neither the loop's heartbeats nor its other streams. An exception
// (bad_alloc) costs the request that it met: the thread goes on, and every request gets an answer.
// Used by request_stream_host.cc. Loop's thread only.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/result.h"
#include "engine/engine.h"
#include "net/event_loop.h"

namespace lockstep {

using DecodedRequest = Result<std::pair<uint64_t, GenerateRequest>>;
using DecodeRequest = std::function<DecodedRequest(std::string_view payload)>;

class RequestDecoder {
 public:
  static constexpr size_t kBytesMax = size_t{64} << 20;  // of all that wait

  // When the loop refuses a call for lack of memory, the thread asks it again after this time.
  static constexpr std::chrono::milliseconds kPostAgain{50};

  // `done` is called on the loop's thread, in the order of add(), and not after this is destroyed,
  // which it may do.
  using Done = std::function<void(uint64_t id, DecodedRequest request)>;
  // EventLoop::post(), called in the thread; it may throw.
  using Post = std::function<void(std::function<void()>)>;
  // `decode` is called in the thread.
  RequestDecoder(Post post, DecodeRequest decode, Done done);
  RequestDecoder(EventLoop& loop, DecodeRequest decode, Done done);
  RequestDecoder(RequestDecoder&&) = delete;
  // Waits for a call of `decode` in progress.
  ~RequestDecoder();

  // False: too many bytes wait already.
  bool add(uint64_t id, std::string payload);

 private:
  struct Item {
    uint64_t id;
    std::string payload;
    std::optional<DecodedRequest> decoded;
  };

  void work();
  void decode_next(std::unique_lock<std::mutex>& lock);
  void post_decoded();
  void deliver();

  const Post post_;
  const DecodeRequest decode_;
  const std::shared_ptr<const Done> done_;  // gone with this

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::list<Item> waiting_;
  std::list<Item> decoded_;  // items move from list to list, which needs no memory
  bool is_posted_ = false;   // a call of deliver() is on its way
  size_t bytes_ = 0;         // of those that wait, and of the one in progress
  bool is_over_ = false;

  std::thread thread_;  // started by the first request
};

}  // namespace lockstep
