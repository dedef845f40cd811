// Chooses the backend for a request: the one that its prefix belongs to, so that its cached
// conversation is reused, unless it is much busier than the least busy one. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep {

struct BackendLoad {
  std::string_view name;   // input of the rendezvous hash: the same on every router
  bool may_answer = true;  // it is healthy, has the model, and has not failed this request yet
  int running = 0;         // this router's requests in flight there
};

struct BalanceLimits {
  // A backend is much busier if it has more than busy_factor times the requests of the least busy
  // one, and busy_slack more.
  double busy_factor = 2.0;
  int busy_slack = 4;
};

// The index of the backend; nullopt if none may answer. Backends are tried in the order of their
// rendezvous scores for `prefix`, so that a lost one moves only its own conversations. Without a
// prefix the least busy one is chosen; ties are broken by `ticket`.
std::optional<size_t> choose_backend(std::span<const BackendLoad> backends,
                                     std::optional<uint64_t> prefix, uint64_t ticket,
                                     const BalanceLimits& limits);

// How strongly `prefix` belongs to a backend; the highest score wins.
uint64_t rendezvous_score(uint64_t prefix, std::string_view backend);

}  // namespace lockstep
