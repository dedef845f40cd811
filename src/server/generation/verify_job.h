// VerifyJob: checks one answer against a model. The answer is fed as its own guess, so that it
// takes the steps of reading it, and every token must be the one that the model chooses. It ends at
// the first difference, or when its client leaves. Events may come from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/http/http_server.h"
#include "node/models/model_service.h"
#include "server/generation/receipt.h"

namespace lockstep {

struct Verdict {
  std::optional<size_t> first_difference;  // index of a token; the answer's length: in its end
  double seconds = 0;
};

class VerifyJob : public std::enable_shared_from_this<VerifyJob> {
 public:
  // Called once, unless the client disconnects first; on a thread of the service or from start().
  using Done = std::function<void(ApiResult<Verdict>)>;

  // `request` is the one that was answered, `answer` not longer than the context.
  static void start(const std::shared_ptr<ModelService>& service, GenerateRequest request,
                    std::vector<int32_t> answer, AnswerEnd end, const HttpReply& reply, Done done);

  VerifyJob(const std::shared_ptr<ModelService>& service, std::vector<int32_t> answer,
            AnswerEnd end, Done done);

 private:
  void submit(ModelService& service, GenerateRequest request);
  void take(const RequestEvent& event);
  // Both under the lock, which they release.
  void finish(std::unique_lock<std::mutex> lock, ApiResult<Verdict> result);
  void differ(std::unique_lock<std::mutex> lock);
  void abandon();  // the client disconnected
  void cancel(std::optional<uint64_t> request) const;

  // Weak: the service holds this as the receiver of its events, and must be able to end meanwhile.
  const std::weak_ptr<ModelService> service_;
  const std::vector<int32_t> answer_;
  const AnswerEnd end_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

  std::mutex mutex_;                 // all below
  Done done_;                        // empty when the job is over
  std::optional<uint64_t> request_;  // its id, while it runs
  bool has_ended_ = false;
  size_t agreed_ = 0;  // tokens
};

}  // namespace lockstep
