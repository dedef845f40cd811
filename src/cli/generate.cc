#include "cli/generate.h"

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

namespace lockstep {
namespace {

// A signal handler can do no more than this; the waiting thread looks at it.
volatile sig_atomic_t interrupted = 0;

class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    sigaction(SIGINT, &action, &previous_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &previous_, nullptr); }

 private:
  struct sigaction previous_ {};
};

struct Shared {
  std::mutex mutex;
  std::condition_variable ended;
  Generated generation;
  std::optional<Result<FinishReason>> outcome;
};

GenerationEvents events_for(const std::shared_ptr<Shared>& shared,
                            std::function<void(int32_t)> on_token) {
  GenerationEvents events;
  events.on_token = [shared, on_token = std::move(on_token)](int32_t token) {
    {
      std::lock_guard lock(shared->mutex);
      Generated& generation = shared->generation;
      generation.last_token = Generated::Clock::now();
      if (generation.tokens.empty()) generation.first_token = generation.last_token;
      generation.tokens.push_back(token);
    }
    if (on_token) on_token(token);
  };
  events.on_logits = [shared](std::span<const float> row) {
    std::lock_guard lock(shared->mutex);
    shared->generation.logits.emplace_back(row.begin(), row.end());
  };
  events.on_end = [shared](Result<FinishReason> outcome) {
    std::lock_guard lock(shared->mutex);
    shared->outcome = std::move(outcome);
    shared->ended.notify_all();
  };
  return events;
}

}  // namespace

double seconds_between(Generated::Clock::time_point from, Generated::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Result<Generated> generate_and_wait(ModelService& service, GenerateRequest request,
                                     std::function<void(int32_t)> on_token) {
  constexpr std::chrono::milliseconds kLook{50};  // how often an interrupt is looked for
  const InterruptGuard guard;
  const auto shared = std::make_shared<Shared>();
  shared->generation.started = Generated::Clock::now();
  const uint64_t id =
      TRY(service.generate(std::move(request), events_for(shared, std::move(on_token))));
  bool is_cancelled = false;
  std::unique_lock lock(shared->mutex);
  // Ends: the service reports one end for each request, within its own deadlines.
  while (!shared->outcome) {
    shared->ended.wait_for(lock, kLook);
    if (interrupted && !is_cancelled) {
      is_cancelled = true;
      lock.unlock();
      service.cancel(id);
      lock.lock();
    }
  }
  if (!shared->outcome->ok()) return shared->outcome->error();
  shared->generation.reason = shared->outcome->value();
  return std::move(shared->generation);
}

}  // namespace lockstep
