// RequestDecoder: decodes the requests of a stream in a thread of its own, one after the other, so
// that a long one delays neither the loop's heartbeats nor its other streams. Used by
// request_stream_host.cc. Loop's thread only.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
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

  // `done` is called on the loop's thread, in the order of add(), and not after this is destroyed,
  // which it may do.
  using Done = std::function<void(uint64_t id, DecodedRequest request)>;
  // `decode` is called in the thread.
  RequestDecoder(EventLoop& loop, DecodeRequest decode, Done done);
  RequestDecoder(RequestDecoder&&) = delete;
  // Waits for a call of `decode` in progress.
  ~RequestDecoder();

  // False: too many bytes wait already.
  bool add(uint64_t id, std::string payload);

 private:
  struct Waiting {
    uint64_t id;
    std::string payload;
  };

  void work();

  EventLoop& loop_;
  const DecodeRequest decode_;
  const std::shared_ptr<const Done> done_;  // gone with this

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  size_t bytes_ = 0;  // of those that wait, and of the one in progress
  bool is_over_ = false;

  std::thread thread_;  // started by the first request
};

}  // namespace lockstep
