// RequestEvent: what is reported of a running request, from the engine of rank 0 to the server that
// writes the answer. Every layer between passes it on as it is; node/wire/event_codec.h encodes it
// between processes and nodes. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "sampling/logprobs.h"

namespace lockstep {

enum class FinishReason {
  kStop,
  kLength
};  // an end of sequence was chosen; max_tokens or the context is reached

struct RequestEvent {
  // The prompt is computed; the state of its first `cached_tokens` was cached. Reported once,
  // before the first token or the end of a request that did not fail.
  struct Started {
    int cached_tokens = 0;
  };
  struct Token {
    int32_t token = 0;
  };
  // Right before its token, if top_logprobs asks for them: the token's own, then the likeliest
  // tokens'.
  struct Logprobs {
    std::vector<TokenLogprob> logprobs;
  };
  // A row of logits, or the one embedding of a request with pooling (not normalised).
  struct Row {
    std::vector<float> values;
    bool is_draft = false;  // logits of the draft layer
  };
  // The last event. An error: the request was refused or failed alone (cancelled, prompt too long,
  // bad token, non-finite logits), or its group was lost.
  struct Ended {
    Result<FinishReason> outcome;
  };
  // With reports_progress: this much of the prompt is computed or was cached. First when the
  // request gets its turn, then after each step of the prompt but the last.
  struct Progress {
    int done = 0;           // tokens of the prompt
    int cached_tokens = 0;  // of these, as in Started
  };
  // From the one who keeps the request: its group is lost, and it waits for the next.
  struct Paused {
    std::string reason;
  };
  // It goes on, after one or more of Paused: everything that the lost group had computed is there
  // again.
  struct Resumed {
    int recomputed_tokens = 0;  // of that, computed a second time
  };
  // From a route only: the group is full. The request has not begun and may be submitted again.
  struct Busy {};

  // The position of an alternative is its number between nodes (cluster/protocol.h).
  using Kind = std::variant<Started, Token, Logprobs, Row, Ended, Busy, Progress, Paused, Resumed>;

  uint64_t id = 0;  // of the request, as the receiver of the event knows it
  Kind what;

  template <class Alternative>
  const Alternative* as() const {
    return std::get_if<Alternative>(&what);
  }
  template <class Alternative>
  Alternative* as() {
    return std::get_if<Alternative>(&what);
  }
};

// Calls must be short: they come from the thread that does the work. The order of a request's
// events is kept.
using EventSink = std::function<void(RequestEvent)>;

}  // namespace lockstep
