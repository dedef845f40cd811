// AnswerClock: when the parts of one answer happened, and how much of its prompts is computed, for
// `timings`, `prompt_progress` and the list of running requests. An answer has one prompt for each
// choice; choices that share one count it once. Pure: the caller says what time it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

// In tokens of all prompts together.
struct PromptProgress {
  int64_t total = 0;
  int64_t cached = 0;  // not computed again
  int64_t done = 0;    // computed or cached
  double ms = 0;       // since the first prompt's turn came
};

struct AnswerTimes {
  double prompt_ms = 0;       // from the first prompt's turn to the first token
  double answer_ms = 0;       // from there to the last token
  double first_token_ms = 0;  // from the request to the first token
};

class AnswerClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `prompts`: the tokens of each choice's prompt, 0 if the choice before it has the same.
  AnswerClock(std::vector<int64_t> prompts, Time began);

  void progress(size_t choice, int64_t done, int64_t cached, Time now);
  void started(size_t choice, int64_t cached, Time now);
  void token(Time now);

  // The group is lost. False: it was already.
  bool pause(Time now);
  // Seconds since pause(); nullopt: it was not called.
  std::optional<double> resume(Time now);
  bool is_paused() const { return paused_at_.has_value(); }

  // Whether the turn of a prompt has come.
  bool has_turn() const { return turn_.has_value(); }
  // Whether a prompt has been computed.
  bool is_computed() const { return computed_.has_value(); }
  PromptProgress prompt(Time now) const;
  AnswerTimes times() const;

 private:
  struct Prompt {
    int64_t size = 0;
    int64_t done = 0;
    int64_t cached = 0;
  };

  std::vector<Prompt> prompts_;
  const Time began_;
  std::optional<Time> turn_;
  std::optional<Time> computed_;  // the first prompt
  std::optional<Time> first_token_;
  Time last_token_;
  std::optional<Time> paused_at_;
};

}  // namespace lockstep
