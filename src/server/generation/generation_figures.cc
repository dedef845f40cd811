// A Generation in the list of running requests.
#include <utility>

#include "server/generation/generation.h"

namespace lockstep {

// The service is asked before the lock is taken: it may hold a lock of its own while it reports.
std::optional<RequestFigures> Generation::figures() const {
  const auto service = service_.lock();
  if (service == nullptr) return std::nullopt;
  const ModelStatus status = service->status();
  const std::lock_guard lock(mutex_);
  if (sink_ == nullptr) return std::nullopt;
  const bool has_token = completion_tokens_ > 0;
  RequestFigures figures{.id = {},
                         .model = status.name,
                         .route = plan_.route,
                         .client = plan_.client_name,
                         .caller = plan_.client,
                         .phase = RequestPhase::kWaiting,
                         .prompt_tokens = plan_.prompt_tokens,
                         .prompt_done = std::nullopt,
                         .tokens = completion_tokens_,
                         .began = began_};
  if (is_computed_ || has_token) {
    figures.phase = RequestPhase::kAnswer;
    figures.prompt_done = plan_.prompt_tokens;
    if (status.state != ModelStatus::State::kReady) figures.phase = RequestPhase::kPaused;
  }
  return figures;
}

// Not one of the statuses after which clients ask again by themselves.
void Generation::stop() {
  const std::lock_guard lock(mutex_);
  if (sink_ == nullptr) return;
  meter_.end(RequestOutcome::kCancelled, Housekeeper::Clock::now());
  fail({410, "the request was cancelled on the node", "", "request_cancelled"});
}

}  // namespace lockstep
