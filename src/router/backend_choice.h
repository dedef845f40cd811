// Which backend answers a request: the one that the request's prefix belongs to, so that what it
// has kept of a conversation is used again, unless it is much busier than the least busy one. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep {

struct BackendLoad {
  std::string_view name;   // rendezvous hashing goes by it: the same on every router
  bool may_answer = true;  // it is healthy, has the model, and has not failed this request yet
  int running = 0;         // requests that this router has given it
};

struct BalanceLimits {
  // A backend is much busier when it has more than busy_factor times the requests of the least
  // busy one, and busy_slack more.
  double busy_factor = 2.0;
  int busy_slack = 4;
};

// The index of the backend; nullopt where none may answer. Backends are asked in the order of their
// rendezvous scores for `prefix`, so that one that goes moves only its own conversations. Without a
// prefix the least busy one answers, of several a different one for each `ticket`.
std::optional<size_t> choose_backend(std::span<const BackendLoad> backends,
                                     std::optional<uint64_t> prefix, uint64_t ticket,
                                     const BalanceLimits& limits);

// How much `prefix` belongs to a backend; the highest score wins.
uint64_t rendezvous_score(uint64_t prefix, std::string_view backend);

}  // namespace lockstep
