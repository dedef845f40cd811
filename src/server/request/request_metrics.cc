#include "server/request/request_metrics.h"

#include <algorithm>

namespace lockstep {
namespace {

double seconds(RequestMeter::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

template <RequestOutcome kOutcome>
void count_outcome(ModelRequests& model, double took) {
  ++model.outcomes[static_cast<size_t>(kOutcome)];
  model.request.add(took);
}

}  // namespace

void SecondsHistogram::add(double seconds) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts[static_cast<size_t>(bound - kBounds.begin())];
  sum += seconds;
}

void RequestMetrics::change(const std::string& model, Change change, double value) {
  const std::lock_guard lock(mutex_);
  auto found = models_.find(model);
  if (found == models_.end()) {
    const bool has_room = models_.size() < kModelsMax;
    found = models_.try_emplace(has_room ? model : std::string(kOthers)).first;
  }
  change(found->second, value);
}

std::map<std::string, ModelRequests> RequestMetrics::models() const {
  const std::lock_guard lock(mutex_);
  return models_;
}

void RequestMeter::set_phase(size_t choice, Phase phase) {
  const Phase before = std::exchange(phases_[choice], phase);
  if (!metrics_ || before == phase) return;
  const auto count = [this](Phase counted, double by) {
    if (counted == Phase::kWaiting) {
      metrics_->change(
          model_,
          [](ModelRequests& model, double more) { model.waiting += static_cast<int64_t>(more); },
          by);
    } else if (counted == Phase::kDecoding) {
      metrics_->change(
          model_,
          [](ModelRequests& model, double more) { model.decoding += static_cast<int64_t>(more); },
          by);
    }
  };
  count(before, -1);
  count(phase, 1);
}

void RequestMeter::started(size_t choice) {
  if (phases_[choice] == Phase::kWaiting) set_phase(choice, Phase::kDecoding);
}

void RequestMeter::accepted(int64_t prompt_tokens) {
  for (size_t choice = 0; choice < phases_.size(); ++choice) set_phase(choice, Phase::kWaiting);
  if (!metrics_) return;
  metrics_->change(
      model_,
      [](ModelRequests& model, double tokens) {
        model.prompt_tokens += static_cast<uint64_t>(tokens);
      },
      static_cast<double>(prompt_tokens));
}

void RequestMeter::cached(int64_t tokens) {
  if (!metrics_) return;
  metrics_->change(
      model_,
      [](ModelRequests& model, double count) {
        model.cached_tokens += static_cast<uint64_t>(count);
      },
      static_cast<double>(tokens));
}

void RequestMeter::computed(int64_t prompt_tokens) {
  if (!metrics_) return;
  metrics_->change(
      model_,
      [](ModelRequests& model, double count) {
        model.computed_prompt_tokens += static_cast<uint64_t>(count);
      },
      static_cast<double>(prompt_tokens));
}

void RequestMeter::token(size_t choice, Clock::time_point now) {
  started(choice);
  if (!metrics_) return;
  std::optional<Clock::time_point>& last = last_tokens_[choice];
  RequestMetrics::Change count = [](ModelRequests& model, double) { ++model.generated_tokens; };
  if (last) {
    count = [](ModelRequests& model, double took) {
      ++model.generated_tokens;
      model.next_token.add(took);
    };
  } else if (!std::exchange(has_first_, true)) {
    count = [](ModelRequests& model, double took) {
      ++model.generated_tokens;
      model.first_token.add(took);
    };
  }
  metrics_->change(model_, count, seconds(now - last.value_or(began_)));
  last = now;
}

void RequestMeter::end(RequestOutcome outcome, Clock::time_point now) {
  for (size_t choice = 0; choice < phases_.size(); ++choice) set_phase(choice, Phase::kEnded);
  if (!metrics_ || std::exchange(has_ended_, true)) return;
  constexpr RequestMetrics::Change kCounts[] = {count_outcome<RequestOutcome::kEnded>,
                                                count_outcome<RequestOutcome::kFailed>,
                                                count_outcome<RequestOutcome::kCancelled>};
  metrics_->change(model_, kCounts[static_cast<size_t>(outcome)], seconds(now - began_));
}

}  // namespace lockstep
