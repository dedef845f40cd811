// RequestLimiter: how many requests one client may make, in a minute and at the same time. A client
// is a number: that of its API key, or of its address where there are no keys. A pure function of
// the times it is given, but that what it hands out counts the requests that run. One thread; what
// it hands out may go on any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "server/errors.h"

namespace lockstep {

class RequestLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  using Permit = std::shared_ptr<const void>;

  struct Limits {
    // So many at once, and from then on one after each 60/N s. 0: no limit, here and below.
    int requests_per_minute = 0;
    int requests_at_once = 0;  // that have not been answered
    size_t clients_max = 4096;
  };

  explicit RequestLimiter(const Limits& limits) : limits_(limits) {}

  // Counts this request, until the permit and all copies of it are gone. 429 says when to come
  // again.
  ApiResult<Permit> admit(uint64_t client, Clock::time_point now);

 private:
  struct Client {
    double requests = 0;  // still allowed
    Clock::time_point filled_at;
    Permit permit;  // each request that runs has a copy
  };

  bool has_room(Clock::time_point now);
  double requests_at(const Client& client, Clock::time_point now) const;
  int running(const Client& client) const;

  const Limits limits_;
  std::unordered_map<uint64_t, Client> clients_;
};

}  // namespace lockstep
