#include "access/request_limiter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

ApiError too_many(std::string message, int retry_after_s) {
  ApiError error{429, std::move(message), "", "rate_limit_exceeded"};
  error.retry_after_s = retry_after_s;
  return error;
}

}  // namespace

ApiResult<RequestLimiter::Permit> RequestLimiter::admit(uint64_t client, Clock::time_point now) {
  const bool has_rate = limits_.requests_per_minute > 0;
  if (!has_rate && limits_.requests_at_once <= 0) return Permit();
  auto found = clients_.find(client);
  if (found == clients_.end()) {
    if (!has_room(now)) {
      return too_many(
          fmt::format("the server already tracks {} clients, try again later", clients_.size()), 1);
    }
    found = clients_
                .emplace(client, Client{static_cast<double>(limits_.requests_per_minute), now,
                                        std::make_shared<const char>()})
                .first;
  }
  Client& state = found->second;
  if (limits_.requests_at_once > 0 && running(state) >= limits_.requests_at_once) {
    return too_many(fmt::format("{} requests of this client are being answered, the maximum; try "
                                "again when one has ended",
                                limits_.requests_at_once),
                    1);
  }
  if (has_rate) {
    state.requests = requests_at(state, now);
    state.filled_at = now;
    if (state.requests < 1) {
      const double wait_s = (1 - state.requests) * 60 / limits_.requests_per_minute;
      return too_many(fmt::format("this client may make at most {} requests per minute",
                                  limits_.requests_per_minute),
                      std::max(1, static_cast<int>(std::ceil(wait_s))));
    }
    state.requests -= 1;
  }
  return state.permit;
}

double RequestLimiter::requests_at(const Client& client, Clock::time_point now) const {
  const std::chrono::duration<double> passed = now - client.filled_at;
  return std::min<double>(limits_.requests_per_minute,
                          client.requests + passed.count() * limits_.requests_per_minute / 60);
}

// A permit that another thread is just releasing may still be counted, which is harmless.
int RequestLimiter::running(const Client& client) const {
  return static_cast<int>(client.permit.use_count()) - 1;
}

// Drops clients whose state equals that of a new client.
bool RequestLimiter::has_room(Clock::time_point now) {
  if (clients_.size() < limits_.clients_max) return true;
  std::erase_if(clients_, [&](const auto& entry) {
    const bool is_full = requests_at(entry.second, now) >= limits_.requests_per_minute;
    return is_full && running(entry.second) == 0;
  });
  return clients_.size() < limits_.clients_max;
}

}  // namespace lockstep
