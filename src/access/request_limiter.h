// RequestLimiter: limits the requests of one client, per minute and at the same time. A client is a
// number: of its API key, or of its address if there are no keys. Depends only on the times it is
// given and on the permits in use. One thread; permits may be released on any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "access/api_error.h"

namespace lockstep {

class RequestLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  using Permit = std::shared_ptr<const void>;

  struct Limits {
    // A burst of N, then one every 60/N s. 0: no limit, here and below.
    int requests_per_minute = 0;
    int requests_at_once = 0;  // not answered yet
    size_t clients_max = 4096;
  };

  explicit RequestLimiter(const Limits& limits) : limits_(limits) {}

  // Counts this request until the permit and all its copies are destroyed. 429 says when to retry.
  ApiResult<Permit> admit(uint64_t client, Clock::time_point now);

 private:
  struct Client {
    double requests = 0;  // still allowed
    Clock::time_point filled_at;
    Permit permit;  // each running request has a copy
  };

  bool has_room(Clock::time_point now);
  double requests_at(const Client& client, Clock::time_point now) const;
  int running(const Client& client) const;

  const Limits limits_;
  std::unordered_map<uint64_t, Client> clients_;
};

}  // namespace lockstep
