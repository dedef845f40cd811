// RequestTable: the unfinished requests of a GroupSupervisor or a RoutedModel, and their
// sinks; `group` is what serves them, here also a RoutedModel's route. Each is either held
// (not yet given to a group, with a deadline) or submitted. When a group is lost its requests are
// held again with the tokens sent so far: the next group gets prompt and tokens and continues bit
// for bit, since a choice depends only on the tokens before it and the seed. One thread uses it:
// the supervising one, or the loop's; a request leaves the table before its end is reported, so
// that is done exactly once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "node/models/model_service.h"

namespace lockstep {

class RequestTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `on_leave` is called for each request that ends, before its end is reported.
  explicit RequestTable(std::function<void()> on_leave) : on_leave_(std::move(on_leave)) {}

  void add(uint64_t id, GenerateRequest request, EventSink events, Time deadline);
  // Passes every held request to `submit`, in order of arrival, except those to be retried later
  // than `now`; a refused one ends with that error.
  void submit_held(const std::function<Status(uint64_t, const GenerateRequest&)>& submit,
                   Time now = Time::max());

  // Passes the event on, unless the client has had it. Ignored: ids that have ended, tokens beyond
  // max_tokens, and what a later group repeats (the start, progress after it, rows). The first
  // start after a loss is also reported as Resumed. Logprobs are reported together with their
  // token. kExhausted ends a resumed request as kLength: its tokens fill the context. Not for Busy,
  // see put_back().
  void take(RequestEvent event);
  void end(uint64_t id, Result<FinishReason> outcome);
  // A held request ends at once. True: it is submitted, and the group must be told to end it; if
  // the group is lost first, the request ends too.
  bool cancel(uint64_t id);

  struct Resumption {
    Time deadline;                // until which requests are held
    int losses_max;               // in a row without a token; one more and the request fails
    int context = 0;              // positions of a sequence; 0: not known
    Time retry_at = Time::min();  // earliest time for the next attempt
  };
  // The group is lost: holds the requests that it had, which are Paused, or fails them.
  void hold_submitted(const Resumption& resumption, const Error& error);
  // The same for one request, whose group continues.
  void hold(uint64_t id, const Resumption& resumption, const Error& error);
  // The group was full, so the request keeps waiting: not a loss.
  void put_back(uint64_t id, Time retry_at);
  void fail_all(const Error& error);
  // Held requests never given to a group.
  void fail_new(const Error& error);
  // Held requests whose deadline has passed.
  void fail_expired(Time now, const Error& error);
  // The earliest deadline of the held requests; Time::max() if none.
  Time next_deadline() const;
  // When the first held request is to be retried; Time::max() if none.
  Time next_retry() const;

 private:
  struct Entry {
    GenerateRequest request;
    EventSink events;
    Time deadline;
    Time retry_at = Time::min();
    bool submitted = false;
    bool was_submitted = false;  // at least once
    bool is_cancelled = false;   // and the group knows
    bool is_started = false;
    bool is_paused = false;
    int prompt_done = 0;      // of the prompt as it was submitted last
    int lost_positions = 0;   // that the groups lost since the last start had computed
    size_t prompt_size = 0;   // of the client's prompt; `request` has sent tokens after it
    size_t rows_told = 0;     // logits sent to the client
    size_t rows_to_skip = 0;  // that this group repeats
    int losses = 0;           // since the last token
    std::optional<RequestEvent> logprobs{};  // of the next token
  };

  // Each: false if the client is not to have it (again).
  static bool note(uint64_t id, Entry& entry, const RequestEvent::Started& started);
  static bool note(uint64_t id, Entry& entry, const RequestEvent::Token& token);
  static bool note(uint64_t id, Entry& entry, const RequestEvent::Row& row);
  static bool note(uint64_t id, Entry& entry, const RequestEvent::Progress& progress);
  template <class Other>
  static bool note(uint64_t, Entry&, const Other&) {
    return true;
  }
  // The outcome of a submitted request whose group is lost; none: it is held.
  std::optional<Result<FinishReason>> lose(uint64_t id, Entry& entry, const Resumption& resumption,
                                           const Error& error) const;
  bool is_complete(const Entry& entry) const;
  static void prepare(Entry& entry);
  void fail_if(const Error& error, const std::function<bool(const Entry&)>& condition);

  std::function<void()> on_leave_;
  std::map<uint64_t, Entry> entries_;  // ids ascend with arrival
  int context_ = 0;                    // of the group lost last
};

}  // namespace lockstep
