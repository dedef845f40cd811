// RequestTable: the requests of a LocalGroup or a ClusterModel that have not ended, and their
// callbacks; `group` is what serves them, a ClusterModel's route included. Each is either held (not
// yet given to a group, with a deadline) or submitted. When a group is lost its requests are held
// again, with what they have been told already: the next group is fed the prompt and the tokens so
// far and goes on where the last one ended, to the bit, since a choice depends on the tokens before
// it and on the seed alone. One thread uses it: the supervising one, or the loop's; a request
// leaves the table before its on_end is called, so exactly one on_end is called for each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "node/model_service.h"

namespace lockstep {

class RequestTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `on_leave` is called for each request that ends, before its on_end.
  explicit RequestTable(std::function<void()> on_leave) : on_leave_(std::move(on_leave)) {}

  void add(uint64_t id, GenerateRequest request, GenerationEvents events, Time deadline);
  // Hands every held request to `submit`, in order of arrival, but those that are to be tried later
  // than `now`; one that is refused ends with that error.
  void submit_held(const std::function<Status(uint64_t, const GenerateRequest&)>& submit,
                   Time now = Time::max());

  // What the first group says counts: later ones are fed what was told as well.
  void start(uint64_t id, int cached_tokens);
  // Ids that have ended meanwhile are ignored, and so are tokens beyond max_tokens. kExhausted of a
  // request that was resumed: what was told fills the context, so the text has reached its length.
  void token(uint64_t id, int32_t token);
  // Of the token that comes next: told together with it.
  void logprobs(uint64_t id, std::span<const TokenLogprob> logprobs);
  void logits(uint64_t id, std::span<const float> row);
  void end(uint64_t id, Result<FinishReason> outcome);
  // A held request ends at once. A submitted one is the group's to end, which must be told: true;
  // if the group is lost before it has, the request ends with it.
  bool cancel(uint64_t id);

  struct Resumption {
    Time deadline;    // until which the requests are held
    int losses_max;   // in a row without a token between them; a request beyond that fails
    int context = 0;  // positions of a sequence; 0: not known
    Time retry_at = Time::min();  // not given to a group before
  };
  // The group is lost: holds what it had been given, or fails it.
  void hold_submitted(const Resumption& resumption, const Error& error);
  // The same for one request, whose group goes on.
  void hold(uint64_t id, const Resumption& resumption, const Error& error);
  // The group had no room for this one, which waits on as before: no loss.
  void put_back(uint64_t id, Time retry_at);
  void fail_all(const Error& error);
  // Held requests that no group was ever given.
  void fail_new(const Error& error);
  // Held requests whose deadline has passed.
  void fail_expired(Time now, const Error& error);
  // Of the held requests; Time::max() without any.
  Time next_deadline() const;
  // When the first held request is to be tried; Time::max() without any.
  Time next_retry() const;

 private:
  struct Entry {
    GenerateRequest request;
    GenerationEvents events;
    Time deadline;
    Time retry_at = Time::min();
    bool submitted = false;
    bool was_submitted = false;  // at any time
    bool is_cancelled = false;   // and the group has been told
    bool is_started = false;
    size_t prompt_size = 0;   // of the client's prompt; what follows it in `request` was told
    size_t rows_told = 0;     // of logits
    size_t rows_to_skip = 0;  // that this group reports once more
    int losses = 0;           // since the last token
    std::vector<TokenLogprob> logprobs{};  // of the token that comes next
  };

  // What becomes of a submitted request whose group is lost: its end, or nothing and it is held.
  std::optional<Result<FinishReason>> lose(Entry& entry, const Resumption& resumption,
                                           const Error& error) const;
  bool is_complete(const Entry& entry) const;
  static void prepare(Entry& entry);
  void fail_if(const Error& error, const std::function<bool(const Entry&)>& condition);

  std::function<void()> on_leave_;
  std::map<uint64_t, Entry> entries_;  // ids ascend with arrival
  int context_ = 0;                    // of the last loss
};

}  // namespace lockstep
