// EmbeddingJob: one HTTP request's embeddings, which is one submission to the model for each text.
// Only a few are in the model's queue at once, so that a request with many texts leaves room for
// others. The first failure ends it, and so does a client that goes. Events may come from any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/http_server.h"
#include "node/model_service.h"
#include "server/errors.h"

namespace lockstep {

using Embeddings = std::vector<std::vector<float>>;

class EmbeddingJob : public std::enable_shared_from_this<EmbeddingJob> {
 public:
  static constexpr size_t kRunningMax = 8;

  // Called once, unless the client goes first; from a thread of the service or from start().
  using Done = std::function<void(ApiResult<Embeddings>)>;

  static void start(const std::shared_ptr<ModelService>& service,
                    std::vector<std::vector<int32_t>> prompts, const HttpReply& reply, Done done);

  EmbeddingJob(const std::shared_ptr<ModelService>& service,
               std::vector<std::vector<int32_t>> prompts, uint64_t client, Done done);

 private:
  struct Text {
    std::vector<int32_t> prompt;
    std::optional<uint64_t> request;  // of the service, once it has accepted
    bool has_ended = false;
  };

  void submit_more();
  void submit(size_t index);
  void end_text(size_t index, const Result<FinishReason>& end);
  void finish(const std::optional<ApiError>& error);
  void abandon();  // the client has gone
  // Under the lock: nothing more is reported; what still runs.
  std::vector<uint64_t> take_running();
  void cancel(const std::vector<uint64_t>& requests) const;

  // Weak: the service holds this, the receiver of its events, and must be able to end meanwhile.
  const std::weak_ptr<ModelService> service_;
  const uint64_t client_;  // whose it is, as the reply says
  const Pooling pooling_;

  std::mutex mutex_;  // all below
  Done done_;         // empty when the job is over
  std::vector<Text> texts_;
  Embeddings embeddings_;
  size_t next_ = 0;  // to be submitted
  size_t running_ = 0;
  size_t ended_ = 0;
  bool is_submitting_ = false;  // some thread is in submit_more()
};

}  // namespace lockstep
