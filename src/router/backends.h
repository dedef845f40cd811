// Backends: the nodes or groups that a router spreads requests over: whether each is healthy, its
// models and its load. Each is polled for health and models for as long as this lives. Belongs to
// the thread of the EventLoop.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "router/backend_choice.h"
#include "router/fetch.h"
#include "router/request_key.h"

namespace lockstep {

struct Backend {
  NetAddress address;
  std::string url;  // "http://10.0.0.2:8600"
  bool is_healthy = false;
  std::string problem = "it has not answered yet";  // empty: none
  std::vector<Json> models;                         // as listed by it, each with an "id"
  int running = 0;
  uint64_t request_count = 0;
  uint64_t failure_count = 0;  // of requests, not of polls

  bool has_model(std::string_view name) const;  // empty: any
};

struct PollOptions {
  std::chrono::milliseconds interval{2'000};  // from an answer to the next poll
  std::chrono::milliseconds timeout{2'000};   // of one answer
  size_t answer_bytes_max = 1 << 20;
  size_t models_max = 1024;  // of one backend; further ones are ignored
  std::string api_key{};     // for the router's own requests; empty: none
};

class Backends {
 public:
  Backends(EventLoop& loop, const std::vector<NetAddress>& addresses, BalanceLimits balance,
           PollOptions poll);

  std::span<const Backend> all() const { return backends_; }
  bool is_any_healthy() const;
  // Every model once, by id, as listed by the first healthy backend that has it.
  JsonArray models() const;
  // Nullopt if no healthy backend outside `tried` has the model.
  std::optional<size_t> choose(const RequestKey& key, std::span<const size_t> tried);

  // A request was sent to a backend, and has ended there.
  void begin(size_t index);
  void end(size_t index);
  void count_failure(size_t index);
  // The backend does not answer: not used until it has answered a poll.
  void mark_lost(size_t index, std::string problem);

 private:
  struct Poll {
    Fetch fetch;
    EventLoop::Timer timer;
  };

  void ask_health(size_t index);
  void ask_models(size_t index);
  void finish_poll(size_t index, std::string problem);
  HttpCall call(size_t index, std::string target) const;

  EventLoop& loop_;
  const BalanceLimits balance_;
  const PollOptions poll_;
  std::vector<Backend> backends_;
  std::vector<Poll> polls_;
  uint64_t ticket_ = 0;
};

}  // namespace lockstep
