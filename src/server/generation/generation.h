// Generation: the text generation of one HTTP request, one submission to the model per choice. It
// turns tokens into text, ends choices at stop strings, counts, and cancels everything when the
// client disconnects or one part fails. A GenerationSink writes the answer. Events may come from
// any thread; a lock serialises them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/http_server.h"
#include "node/models/model_service.h"
#include "server/generation/answer_clock.h"
#include "server/generation/logprob_queue.h"
#include "server/generation/receipt.h"
#include "server/generation/stop_matcher.h"
#include "server/generation/token_logprobs.h"
#include "server/request/errors.h"
#include "server/request/housekeeper.h"
#include "server/request/request_metrics.h"
#include "server/request/running_requests.h"

namespace lockstep {

struct GenerationUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of prompt_tokens, those not computed again
  int64_t completion_tokens = 0;
};

// Where an answer stood still or moved to other machines.
struct AnswerSeam {
  enum class Kind : uint8_t {
    kPause,   // the group was lost
    kResume,  // it goes on
    kNode,    // with other machines than before
  };
  Kind kind = Kind::kPause;
  std::string reason;             // a sentence; not of kResume
  double after_s = 0;             // of kResume: since the pause
  int64_t recomputed_tokens = 0;  // of kResume: that had been computed before the loss
};

// Known at the end of an answer.
struct AnswerFacts {
  GenerationUsage usage;
  AnswerTimes times;
  size_t machines = 0;  // that computed it, as far as known
  // With makes_receipt; empty if nothing identifies the model.
  std::string receipt;
  std::vector<int32_t> answer_ids;
};

// Writes an answer. Calls come one at a time, none after on_end or on_error.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // The model has accepted every part of the request.
  virtual void on_accept() {}
  // The first token or end has come: from now on the answer cannot have an error status. `usage` is
  // what is known by then: all but completion_tokens; with several prompts, cached_tokens may cover
  // only the first.
  virtual void on_start(const GenerationUsage& usage) = 0;
  // Logprobs of the tokens that make up the next on_text or on_choice_end, if requested.
  virtual void on_logprobs(size_t, std::vector<TokenLogprobs>) {}
  virtual void on_text(size_t choice, std::string text) = 0;  // whole characters, not empty
  // A token has come; its text has been passed on as far as it is known to be part of the answer.
  virtual void on_token(size_t) {}
  virtual void on_stop_string(size_t, std::string_view) {}  // the one that ends the choice
  virtual void on_choice_end(size_t choice, std::string_view finish_reason) = 0;
  // Before on_start: how much of the prompts is computed.
  virtual void on_progress(const PromptProgress&) {}
  virtual void on_seam(const AnswerSeam&) {}
  virtual void on_silence() = 0;  // also before on_start, while the prompt is computed
  // Why the answer cannot continue: it is too large. Checked after each token; generation then ends
  // with on_error.
  virtual std::optional<ApiError> problem() const { return std::nullopt; }
  virtual void on_end(const AnswerFacts& facts) = 0;
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
  std::vector<int32_t> stop_ids{};  // besides those of the model
  std::string constraint;           // on the answers, a text for grammar/constraint.h; empty: none
  std::vector<LogitBias> logit_bias;
  std::vector<int32_t> dry_breakers;
  int min_tokens = 0;
  bool ignores_end = false;  // end tokens do not end the answer
  int top_logprobs = -1;
  bool strips_leading_space = false;
  std::map<int32_t, std::string> printed_tokens;  // special tokens that are part of the text
  int64_t prompt_tokens = 0;                      // each prompt once, however many choices it has
  uint64_t client = 0;                            // HttpReply::caller()
  std::string client_name{};                      // HttpReply::client()
  std::string route{};                            // HttpReply::route()
  bool makes_receipt = false;                     // with one choice
};

// The request that is submitted for a choice. `stop_ids`: the model's.
GenerateRequest request_of(const GenerationPlan& plan, size_t choice,
                           const std::vector<int32_t>& stop_ids);

// The names of the machines that the model's ranks are on, each once; the leading node's is empty
// there.
std::vector<std::string> machines_of(const ModelStatus& status);

class Generation : public Housekeeper::Watched,
                   public RunningRequest,
                   public std::enable_shared_from_this<Generation> {
 public:
  struct Setup {
    std::weak_ptr<Housekeeper> housekeeper;  // weak: generations may outlive the server
    std::chrono::milliseconds silence_max;   // after it GenerationSink::on_silence
    std::shared_ptr<RequestMetrics> metrics;
    int draft_tokens = 0;                                // GenerateRequest::draft_tokens
    std::shared_ptr<RunningRequests> running = nullptr;  // null: in no list
    // Registers how to end the answer when nobody wants it any more; null: its client's
    // disconnection ends it.
    std::function<void(std::function<void()> abandon)> on_unwanted = nullptr;
  };

  // Submits everything. Refusals reach the sink as on_error.
  static void start(const std::shared_ptr<ModelService>& service, Setup setup, GenerationPlan plan,
                    std::unique_ptr<GenerationSink> sink, const HttpReply& reply);

  // `status`: of the service, now.
  Generation(const std::shared_ptr<ModelService>& service, const ModelStatus& status, Setup setup,
             GenerationPlan plan, std::unique_ptr<GenerationSink> sink);
  void on_tick(Housekeeper::Clock::time_point now) override;
  std::optional<RequestFigures> figures() const override;
  void stop() override;

 private:
  struct Choice {
    StreamDecoder decoder;
    StopMatcher matcher;
    std::optional<uint64_t> request;  // its id, once the service has accepted
    bool has_ended = false;
    LogprobQueue logprobs;
  };
  struct ChoiceEvent {
    size_t choice;
    RequestEvent event;
  };

  bool submit(ModelService& service, size_t choice);
  void open();  // all choices are submitted: processes held and new events
  void handle(ChoiceEvent event);
  void process(const ChoiceEvent& event);
  void process(size_t choice, const RequestEvent::Started& started);
  void process(size_t choice, const RequestEvent::Token& token);
  void process(size_t choice, const RequestEvent::Logprobs& logprobs);
  void process(size_t, const RequestEvent::Row&) {}  // of no answer in text
  void process(size_t choice, const RequestEvent::Ended& ended);
  void process(size_t, const RequestEvent::Busy&) {}  // services report none
  void process(size_t choice, const RequestEvent::Progress& progress);
  void process(size_t choice, const RequestEvent::Paused& paused);
  void process(size_t choice, const RequestEvent::Resumed& resumed);
  void look_at_machines();
  AnswerFacts facts() const;
  std::string receipt() const;
  ApiError end_error(size_t choice, const Error& error) const;
  GenerationUsage usage() const;
  void begin();
  // `text` is the decoder's output.
  void pass_on(size_t choice, const std::string& text);
  void emit(size_t choice, std::string text);
  void end_choice(size_t choice, std::string_view reason);
  void fail(const ApiError& error);
  void abandon();  // the client disconnected
  std::vector<uint64_t> running() const;
  void cancel_soon(std::vector<uint64_t> requests);

  // Weak: the service holds this as the receiver of its events, and must be able to end meanwhile;
  // the last event could otherwise destroy the service on the service's own thread.
  const std::weak_ptr<ModelService> service_;
  const Setup setup_;
  const GenerationPlan plan_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const Housekeeper::Clock::time_point began_ = Housekeeper::Clock::now();
  RunningRequests::Entry entry_;  // of start()
  std::string request_hash_;      // with makes_receipt; set before the request is submitted

  mutable std::mutex mutex_;              // all below
  std::unique_ptr<GenerationSink> sink_;  // null when the answer is over
  std::vector<Choice> choices_;
  // Before open(): a few for each token and each step of a prompt.
  std::vector<ChoiceEvent> early_;
  bool is_open_ = false;
  bool has_begun_ = false;
  RequestMeter meter_;
  int64_t cached_tokens_ = 0;
  int64_t completion_tokens_ = 0;
  Housekeeper::Clock::time_point last_event_;  // of those that are written
  AnswerClock clock_;
  std::vector<std::string> machines_;  // of the group, by name
  std::string identity_;               // ModelStatus::identity
  std::vector<int32_t> answer_ids_;    // with makes_receipt
  AnswerEnd end_ = AnswerEnd::kLength;
};

}  // namespace lockstep
