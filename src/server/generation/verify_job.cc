#include "server/generation/verify_job.h"

#include <utility>

namespace lockstep {

void VerifyJob::start(const std::shared_ptr<ModelService>& service, GenerateRequest request,
                      std::vector<int32_t> answer, AnswerEnd end, const HttpReply& reply,
                      Done done) {
  request.guess = answer;
  // The end is a choice too.
  request.max_tokens = static_cast<int>(answer.size()) + (end == AnswerEnd::kToken ? 1 : 0);
  request.draft_tokens = 0;
  request.top_logprobs = -1;
  request.client = reply.caller();
  const auto job = std::make_shared<VerifyJob>(service, std::move(answer), end, std::move(done));
  reply.on_disconnect([job] { job->abandon(); });
  job->submit(*service, std::move(request));
}

VerifyJob::VerifyJob(const std::shared_ptr<ModelService>& service, std::vector<int32_t> answer,
                     AnswerEnd end, Done done)
    : service_(service), answer_(std::move(answer)), end_(end), done_(std::move(done)) {}

// No lock is held while the service is called.
void VerifyJob::submit(ModelService& service, GenerateRequest request) {
  const auto accepted = service.generate(
      std::move(request),
      [self = shared_from_this()](const RequestEvent& event) { self->take(event); });
  std::unique_lock lock(mutex_);
  if (!accepted.ok()) return finish(std::move(lock), to_api_error(accepted.error()));
  const bool is_late = !done_ && !has_ended_;  // it differed, or the client left meanwhile
  if (!has_ended_) request_ = accepted.value();
  lock.unlock();
  if (is_late) service.cancel(accepted.value());
}

void VerifyJob::take(const RequestEvent& event) {
  std::unique_lock lock(mutex_);
  if (const auto* token = event.as<RequestEvent::Token>()) {
    const bool is_same = agreed_ < answer_.size() && token->token == answer_[agreed_];
    if (!is_same) return differ(std::move(lock));
    ++agreed_;
  } else if (const auto* ended = event.as<RequestEvent::Ended>()) {
    has_ended_ = true;
    request_.reset();
    if (!ended->outcome.ok()) return finish(std::move(lock), to_api_error(ended->outcome.error()));
    const bool is_stop = ended->outcome.value() == FinishReason::kStop;
    const bool is_same = agreed_ == answer_.size() && is_stop == (end_ == AnswerEnd::kToken);
    if (!is_same) return differ(std::move(lock));
    finish(std::move(lock), Verdict{});
  }
}

void VerifyJob::differ(std::unique_lock<std::mutex> lock) {
  finish(std::move(lock), Verdict{.first_difference = agreed_});
}

void VerifyJob::finish(std::unique_lock<std::mutex> lock, ApiResult<Verdict> result) {
  if (!done_) return;
  const Done done = std::exchange(done_, nullptr);
  const auto running = std::exchange(request_, std::nullopt);
  lock.unlock();
  cancel(running);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
  if (result.ok()) result.value().seconds = took.count();
  done(std::move(result));
}

void VerifyJob::abandon() {
  std::unique_lock lock(mutex_);
  if (!done_) return;
  const Done dropped = std::exchange(done_, nullptr);  // after the lock: it may hold the reply
  const auto running = std::exchange(request_, std::nullopt);
  lock.unlock();
  cancel(running);
}

void VerifyJob::cancel(std::optional<uint64_t> request) const {
  const auto service = service_.lock();
  if (request && service != nullptr) service->cancel(*request);
}

}  // namespace lockstep
