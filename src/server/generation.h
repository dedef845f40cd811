// Generation: one HTTP request's text generation, which is one submission to the model for each
// choice. It turns tokens into text, ends choices at stop strings, counts, and cancels everything
// when the client goes or one part fails. What the client gets to see is made by a GenerationSink.
// Events may come from any thread; a lock serialises them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "net/http_server.h"
#include "node/model_service.h"
#include "server/errors.h"
#include "server/housekeeper.h"
#include "server/logprob_queue.h"
#include "server/request_metrics.h"
#include "server/stop_matcher.h"
#include "server/token_logprobs.h"

namespace lockstep {

struct GenerationUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of prompt_tokens, those that did not have to be computed
  int64_t completion_tokens = 0;
};

// The shape of an answer. Calls come one at a time, after on_end or on_error none.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // The first token or end has come: from now on the answer is no error status any more.
  // `usage` is what is known by then: all but completion_tokens, and of several choices with
  // prompts of their own perhaps only what the first has found cached.
  virtual void on_start(const GenerationUsage& usage) = 0;
  // Of the tokens that the next on_text or on_choice_end comes of, if the request wants them.
  virtual void on_logprobs(size_t, std::vector<TokenLogprobs>) {}
  virtual void on_text(size_t choice, std::string text) = 0;  // whole characters, not empty
  // A token has come; its text has been told as far as it is known to be part of the answer.
  virtual void on_token(size_t) {}
  virtual void on_stop_string(size_t, std::string_view) {}  // that ends the choice
  virtual void on_choice_end(size_t choice, std::string_view finish_reason) = 0;
  virtual void on_silence() = 0;  // also before on_start: the prompt takes long
  virtual void on_end(GenerationUsage usage) = 0;
  virtual void on_error(const ApiError& error) = 0;
};

struct GenerationPlan {
  struct Choice {
    std::vector<int32_t> prompt;
    uint64_t seed = 0;
    std::string echo;  // text that the answer begins with
  };
  std::vector<Choice> choices;
  int max_tokens = 16;
  SamplingOptions sampling;  // without the seed
  std::vector<std::string> stop;
  std::vector<int32_t> stop_ids{};  // beside those of the model
  std::string constraint;  // of the answers, as a text of grammar/constraint.h; empty: none
  std::vector<LogitBias> logit_bias;
  std::vector<int32_t> dry_breakers;
  int min_tokens = 0;
  bool ignores_end = false;  // end tokens end nothing
  int top_logprobs = -1;
  bool strips_leading_space = false;
  std::map<int32_t, std::string> printed_tokens;  // special tokens that are part of the text
  int64_t prompt_tokens = 0;                      // each prompt once, however many choices it has
  uint64_t client = 0;                            // whose it is, as the reply says
};

class Generation : public Housekeeper::Watched, public std::enable_shared_from_this<Generation> {
 public:
  struct Setup {
    std::weak_ptr<Housekeeper> housekeeper;  // generations may outlive the server
    std::chrono::milliseconds silence_max;   // then GenerationSink::on_silence
    std::shared_ptr<RequestMetrics> metrics;
    int draft_tokens = 0;  // GenerateRequest::draft_tokens
  };

  // Submits everything. Refusals reach the sink as on_error.
  static void start(const std::shared_ptr<ModelService>& service, Setup setup, GenerationPlan plan,
                    std::unique_ptr<GenerationSink> sink, const HttpReply& reply);

  Generation(const std::shared_ptr<ModelService>& service, Setup setup, GenerationPlan plan,
             std::unique_ptr<GenerationSink> sink);
  void on_tick(Housekeeper::Clock::time_point now) override;

 private:
  struct Choice {
    StreamDecoder decoder;
    StopMatcher matcher;
    std::optional<uint64_t> request;  // of the service, once it has accepted
    bool has_ended = false;
    LogprobQueue logprobs;
  };
  struct Start {
    int cached_tokens;
  };
  // Those of a token come before it.
  using Logprobs = std::vector<TokenLogprob>;
  struct Event {
    size_t choice;
    std::variant<int32_t, Start, Logprobs, Result<FinishReason>> what;
  };

  bool submit(ModelService& service, size_t choice);
  void open();  // all choices are submitted: lets events through
  void handle(Event event);
  void process(const Event& event);
  void process_start(size_t choice, Start start);
  void process_token(size_t choice, int32_t token);
  void process_end(size_t choice, const Result<FinishReason>& end);
  ApiError end_error(size_t choice, const Error& error) const;
  GenerationUsage usage() const;
  void begin();
  // `text` is what the decoder has made.
  void pass_on(size_t choice, const std::string& text);
  void emit(size_t choice, std::string text);
  void end_choice(size_t choice, std::string_view reason);
  void fail(const ApiError& error);
  void abandon();  // the client has gone
  std::vector<uint64_t> running() const;
  void cancel_soon(std::vector<uint64_t> requests);

  // Weak: the service holds this, the receiver of its events, and must be able to end meanwhile;
  // the last event would otherwise destroy the service on the service's own thread.
  const std::weak_ptr<ModelService> service_;
  const Setup setup_;
  const GenerationPlan plan_;
  const std::shared_ptr<const Tokenizer> tokenizer_;

  std::mutex mutex_;                      // all below
  std::unique_ptr<GenerationSink> sink_;  // null when the answer is over
  std::vector<Choice> choices_;
  std::vector<Event> early_;  // that came before open(); at most 2 max_tokens + 2 of each choice
  bool is_open_ = false;
  bool has_begun_ = false;
  RequestMeter meter_;
  int64_t cached_tokens_ = 0;
  int64_t completion_tokens_ = 0;
  Housekeeper::Clock::time_point last_event_;
};

}  // namespace lockstep
