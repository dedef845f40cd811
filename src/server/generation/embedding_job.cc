#include "server/generation/embedding_job.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep {

void EmbeddingJob::start(const std::shared_ptr<ModelService>& service,
                         std::vector<std::vector<int32_t>> prompts, const HttpReply& reply,
                         Done done) {
  const auto job =
      std::make_shared<EmbeddingJob>(service, std::move(prompts), reply.caller(), std::move(done));
  reply.on_disconnect([job] { job->abandon(); });
  job->submit_more();
}

EmbeddingJob::EmbeddingJob(const std::shared_ptr<ModelService>& service,
                           std::vector<std::vector<int32_t>> prompts, uint64_t client, Done done)
    : service_(service),
      client_(client),
      pooling_(service->status().pooling),
      done_(std::move(done)),
      embeddings_(prompts.size()) {
  for (std::vector<int32_t>& prompt : prompts) {
    texts_.push_back({std::move(prompt), std::nullopt, false});
  }
}

// A text may end, and call this for the next one, before its submission returns: the submitting
// thread then continues.
void EmbeddingJob::submit_more() {
  std::unique_lock lock(mutex_);
  if (is_submitting_) return;
  is_submitting_ = true;
  while (done_ && next_ < texts_.size() && running_ < kRunningMax) {
    const size_t index = next_++;
    ++running_;
    lock.unlock();
    submit(index);
    lock.lock();
  }
  is_submitting_ = false;
}

// No lock is held while the service is called.
void EmbeddingJob::submit(size_t index) {
  const auto service = service_.lock();
  if (service == nullptr)
    return finish(ApiError{503, "the model was unloaded", "", "model_not_ready"});
  GenerateRequest request;
  request.prompt = std::move(texts_[index].prompt);
  request.max_tokens = 0;
  request.pooling = pooling_;
  request.client = client_;
  const auto accepted =
      service->generate(std::move(request), [self = shared_from_this(), index](RequestEvent event) {
        if (auto* row = event.as<RequestEvent::Row>()) self->take_row(index, std::move(*row));
        if (auto* ended = event.as<RequestEvent::Ended>()) self->end_text(index, ended->outcome);
      });
  if (!accepted.ok()) return finish(to_api_error(accepted.error()));
  std::unique_lock lock(mutex_);
  texts_[index].request = accepted.value();
  const bool is_late = !done_ && !texts_[index].has_ended;  // the job ended meanwhile
  lock.unlock();
  if (is_late) service->cancel(accepted.value());
}

void EmbeddingJob::take_row(size_t index, RequestEvent::Row row) {
  const std::lock_guard lock(mutex_);
  embeddings_[index] = std::move(row.values);
}

void EmbeddingJob::end_text(size_t index, const Result<FinishReason>& end) {
  std::optional<ApiError> error;
  if (!end.ok()) {
    error = to_api_error(end.error());
    if (end.error().code == ErrorCode::kExhausted) {
      error->status = 400;
      error->code = "context_length_exceeded";
    }
  }
  bool is_last = false;
  {
    std::lock_guard lock(mutex_);
    texts_[index].has_ended = true;
    --running_;
    is_last = ++ended_ == texts_.size();
    if (!error && embeddings_[index].empty()) {
      error = ApiError{500, "the model did not return an embedding", "", "internal_error"};
    } else if (!error && embeddings_[index].size() * texts_.size() > kValuesMax) {
      error = bad_field("input", fmt::format("{} texts with {} numbers each are more than the {} "
                                             "that a request may have: send fewer at once",
                                             texts_.size(), embeddings_[index].size(), kValuesMax));
    }
  }
  if (error || is_last) return finish(error);
  submit_more();
}

void EmbeddingJob::finish(const std::optional<ApiError>& error) {
  std::unique_lock lock(mutex_);
  if (!done_) return;
  const Done done = std::exchange(done_, nullptr);
  const std::vector<uint64_t> running = take_running();
  Embeddings embeddings = std::move(embeddings_);
  embeddings_.resize(texts_.size());  // for texts still running
  lock.unlock();
  cancel(running);
  done(error ? ApiResult<Embeddings>(*error) : ApiResult<Embeddings>(std::move(embeddings)));
}

void EmbeddingJob::abandon() {
  std::unique_lock lock(mutex_);
  if (!done_) return;
  const Done dropped = std::exchange(done_, nullptr);  // after the lock: it may hold the reply
  const std::vector<uint64_t> running = take_running();
  lock.unlock();
  cancel(running);
}

std::vector<uint64_t> EmbeddingJob::take_running() {
  std::vector<uint64_t> requests;
  for (const Text& text : texts_) {
    if (text.request && !text.has_ended) requests.push_back(*text.request);
  }
  return requests;
}

void EmbeddingJob::cancel(const std::vector<uint64_t>& requests) const {
  const auto service = service_.lock();
  if (service == nullptr) return;
  for (const uint64_t request : requests) service->cancel(request);
}

}  // namespace lockstep
