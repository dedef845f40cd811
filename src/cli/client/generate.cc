#include "cli/client/generate.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "cli/flags/interrupt.h"

namespace lockstep {
namespace {

struct Shared {
  std::mutex mutex;
  std::condition_variable ended;
  Generated generation;
  std::optional<Result<FinishReason>> outcome;
};

EventSink events_for(const std::shared_ptr<Shared>& shared, std::function<void(int32_t)> on_token) {
  return [shared, on_token = std::move(on_token)](RequestEvent event) {
    std::unique_lock lock(shared->mutex);
    Generated& generation = shared->generation;
    if (const auto* token = event.as<RequestEvent::Token>()) {
      generation.last_token = Generated::Clock::now();
      if (generation.tokens.empty()) generation.first_token = generation.last_token;
      generation.tokens.push_back(token->token);
      lock.unlock();
      if (on_token) on_token(token->token);
    } else if (auto* row = event.as<RequestEvent::Row>()) {
      auto& rows = row->is_draft ? generation.draft_logits : generation.logits;
      rows.push_back(std::move(row->values));
    } else if (auto* ended = event.as<RequestEvent::Ended>()) {
      shared->outcome = std::move(ended->outcome);
      shared->ended.notify_all();
    }
  };
}

struct Started {
  uint64_t id = 0;
  std::shared_ptr<Shared> shared;
};

Result<Started> start_generation(ModelService& service, GenerateRequest request,
                                 std::function<void(int32_t)> on_token) {
  Started started{0, std::make_shared<Shared>()};
  started.shared->generation.started = Generated::Clock::now();
  started.id =
      TRY(service.generate(std::move(request), events_for(started.shared, std::move(on_token))));
  return started;
}

// Under an InterruptGuard.
Result<Generated> finish_generation(ModelService& service, const Started& started) {
  constexpr std::chrono::milliseconds kLook{50};  // how often to check for an interrupt
  Shared& shared = *started.shared;
  bool is_cancelled = false;
  std::unique_lock lock(shared.mutex);
  // Terminates: the service reports one end for each request, within its own deadlines.
  while (!shared.outcome) {
    shared.ended.wait_for(lock, kLook);
    if (InterruptGuard::is_interrupted() && !is_cancelled) {
      is_cancelled = true;
      lock.unlock();
      service.cancel(started.id);
      lock.lock();
    }
  }
  if (!shared.outcome->ok()) return shared.outcome->error();
  shared.generation.reason = shared.outcome->value();
  return std::move(shared.generation);
}

}  // namespace

double seconds_between(Generated::Clock::time_point from, Generated::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Result<Generated> generate_and_wait(ModelService& service, GenerateRequest request,
                                    std::function<void(int32_t)> on_token) {
  const InterruptGuard guard;
  return finish_generation(service,
                           TRY(start_generation(service, std::move(request), std::move(on_token))));
}

Result<std::vector<Generated>> generate_together(ModelService& service,
                                                 std::vector<GenerateRequest> requests) {
  const InterruptGuard guard;
  std::vector<Result<Started>> started;
  for (GenerateRequest& request : requests) {
    started.push_back(start_generation(service, std::move(request), nullptr));
  }
  std::vector<Generated> all;
  std::optional<Error> error;
  for (const Result<Started>& one : started) {
    Result<Generated> done = one.ok() ? finish_generation(service, one.value()) : one.error();
    if (done.ok()) {
      all.push_back(std::move(done.value()));
    } else if (!error) {
      error = std::move(done.error());
    }
  }
  if (error) return std::move(*error);
  return all;
}

}  // namespace lockstep
