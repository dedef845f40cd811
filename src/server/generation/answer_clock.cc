#include "server/generation/answer_clock.h"

#include <algorithm>

namespace lockstep {
namespace {

double ms_between(AnswerClock::Time from, AnswerClock::Time to) {
  return std::max(0.0, std::chrono::duration<double, std::milli>(to - from).count());
}

}  // namespace

AnswerClock::AnswerClock(std::vector<int64_t> prompts, Time began)
    : began_(began), last_token_(began) {
  for (const int64_t size : prompts) prompts_.push_back({.size = size});
}

void AnswerClock::progress(size_t choice, int64_t done, int64_t cached, Time now) {
  if (!turn_) turn_ = now;
  Prompt& prompt = prompts_[choice];
  prompt.done = std::min(done, prompt.size);
  prompt.cached = std::min(cached, prompt.done);
}

void AnswerClock::started(size_t choice, int64_t cached, Time now) {
  progress(choice, prompts_[choice].size, cached, now);
  if (!computed_) computed_ = now;
}

void AnswerClock::token(Time now) {
  if (!first_token_) first_token_ = now;
  last_token_ = now;
}

bool AnswerClock::pause(Time now) {
  if (paused_at_) return false;
  paused_at_ = now;
  return true;
}

std::optional<double> AnswerClock::resume(Time now) {
  if (!paused_at_) return std::nullopt;
  const double seconds = ms_between(*paused_at_, now) / 1000;
  paused_at_.reset();
  return seconds;
}

PromptProgress AnswerClock::prompt(Time now) const {
  PromptProgress all;
  for (const Prompt& prompt : prompts_) {
    all.total += prompt.size;
    all.cached += prompt.cached;
    all.done += prompt.done;
  }
  if (turn_) all.ms = ms_between(*turn_, now);
  return all;
}

AnswerTimes AnswerClock::times() const {
  AnswerTimes times;
  const Time turn = turn_.value_or(began_);
  const Time computed = computed_.value_or(turn);
  const Time first = first_token_.value_or(computed);
  times.prompt_ms = ms_between(turn, first);
  times.answer_ms = first_token_ ? ms_between(first, last_token_) : 0;
  times.first_token_ms = ms_between(began_, first);
  return times;
}

}  // namespace lockstep
