// How a Generation is doing: in the list of running requests, and as reports to its sink.
#include <algorithm>
#include <set>
#include <utility>

#include "base/version.h"
#include "server/generation/generation.h"

namespace lockstep {

// The service is asked before the lock is taken: it may hold a lock of its own while it reports.
std::optional<RequestFigures> Generation::figures() const {
  const auto service = service_.lock();
  if (service == nullptr) return std::nullopt;
  const ModelStatus status = service->status();
  const bool is_ready = status.state == ModelStatus::State::kReady;
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
  if (clock_.has_turn()) {
    figures.phase = RequestPhase::kPrompt;
    figures.prompt_done = clock_.prompt(Housekeeper::Clock::now()).done;
  }
  if (clock_.is_computed() || has_token) {
    figures.phase = RequestPhase::kAnswer;
    figures.prompt_done = plan_.prompt_tokens;
  }
  const bool stands = figures.phase != RequestPhase::kWaiting && !is_ready;
  if (stands || clock_.is_paused()) figures.phase = RequestPhase::kPaused;
  return figures;
}

void Generation::process(size_t choice, const RequestEvent::Progress& progress) {
  const auto now = Housekeeper::Clock::now();
  clock_.progress(choice, progress.done, progress.cached_tokens, now);
  if (!has_begun_) sink_->on_progress(clock_.prompt(now));
}

void Generation::process(size_t, const RequestEvent::Paused& paused) {
  if (!clock_.pause(Housekeeper::Clock::now())) return;
  sink_->on_seam({.kind = AnswerSeam::Kind::kPause, .reason = paused.reason});
}

void Generation::process(size_t, const RequestEvent::Resumed& resumed) {
  const auto seconds = clock_.resume(Housekeeper::Clock::now());
  if (!seconds) return;
  sink_->on_seam({.kind = AnswerSeam::Kind::kResume,
                  .after_s = *seconds,
                  .recomputed_tokens = resumed.recomputed_tokens});
  const auto housekeeper = setup_.housekeeper.lock();
  if (housekeeper == nullptr) return;
  housekeeper->run_soon([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look_at_machines();
  });
}

// Not inside an event, see figures().
void Generation::look_at_machines() {
  const auto service = service_.lock();
  if (service == nullptr) return;
  const ModelStatus status = service->status();
  const std::vector<std::string> machines = machines_of(status);
  const std::lock_guard lock(mutex_);
  if (machines.empty()) return;                         // lost again
  if (status.identity != identity_) identity_.clear();  // a receipt would name one model of two
  const std::vector<std::string> before = std::exchange(machines_, machines);
  if (sink_ == nullptr || before.empty() || machines == before) return;
  std::string names;
  for (const std::string& machine : machines) {
    if (!names.empty()) names += ", ";
    names += machine.empty() ? "the leading node" : machine;
  }
  sink_->on_seam({.kind = AnswerSeam::Kind::kNode, .reason = "the answer goes on with " + names});
}

AnswerFacts Generation::facts() const {
  return {.usage = usage(),
          .times = clock_.times(),
          .machines = machines_.size(),
          .receipt = plan_.makes_receipt ? receipt() : "",
          .answer_ids = answer_ids_};
}

std::string Generation::receipt() const {
  if (identity_.empty()) return "";
  return receipt_text({.version = kVersion,
                       .model = identity_,
                       .request = request_hash_,
                       .answer = answer_hash(answer_ids_, end_),
                       .end = end_,
                       .seed = plan_.choices.front().seed});
}

std::vector<std::string> machines_of(const ModelStatus& status) {
  std::set<std::string> names;
  for (const RankStatus& rank : status.ranks) names.insert(rank.node);
  return {names.begin(), names.end()};
}

// Not one of the statuses after which clients ask again by themselves.
void Generation::stop() {
  const std::lock_guard lock(mutex_);
  if (sink_ == nullptr) return;
  meter_.end(RequestOutcome::kCancelled, Housekeeper::Clock::now());
  fail({410, "the request was cancelled on the node", "", "request_cancelled"});
}

}  // namespace lockstep
