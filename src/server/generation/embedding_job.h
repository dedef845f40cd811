// EmbeddingJob: the embeddings of one HTTP request, one submission to the model per text. Only a
// few are in the model's queue at once, so that a request with many texts leaves room for others.
// The first failure or a disconnected client ends it. Events may come from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/http/http_server.h"
#include "node/models/model_service.h"
#include "server/request/errors.h"

namespace lockstep {

using Embeddings = std::vector<std::vector<float>>;

class EmbeddingJob : public std::enable_shared_from_this<EmbeddingJob> {
 public:
  static constexpr size_t kRunningMax = 8;
  // Numbers in all vectors of a request, which are held until the last one is done.
  static constexpr size_t kValuesMax = 8 << 20;

  // Called once, unless the client disconnects first; on a thread of the service or from start().
  using Done = std::function<void(ApiResult<Embeddings>)>;

  static void start(const std::shared_ptr<ModelService>& service,
                    std::vector<std::vector<int32_t>> prompts, const HttpReply& reply, Done done);

  EmbeddingJob(const std::shared_ptr<ModelService>& service,
               std::vector<std::vector<int32_t>> prompts, uint64_t client, Done done);

 private:
  struct Text {
    std::vector<int32_t> prompt;
    std::optional<uint64_t> request;  // its id, once the service has accepted
    bool has_ended = false;
  };

  void submit_more();
  void submit(size_t index);
  void take_row(size_t index, RequestEvent::Row row);
  void end_text(size_t index, const Result<FinishReason>& end);
  void finish(const std::optional<ApiError>& error);
  void abandon();  // the client disconnected
  // Under the lock: stops all reports and returns what still runs.
  std::vector<uint64_t> take_running();
  void cancel(const std::vector<uint64_t>& requests) const;

  // Weak: the service holds this as the receiver of its events, and must be able to end meanwhile.
  const std::weak_ptr<ModelService> service_;
  const uint64_t client_;  // HttpReply::caller()
  const Pooling pooling_;

  std::mutex mutex_;  // all below
  Done done_;         // empty when the job is over
  std::vector<Text> texts_;
  Embeddings embeddings_;
  size_t next_ = 0;  // to be submitted
  size_t running_ = 0;
  size_t ended_ = 0;
  bool is_submitting_ = false;  // a thread is in submit_more()
};

}  // namespace lockstep
