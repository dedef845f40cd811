#include "cli/load_watch.h"

#include <algorithm>

#include "cli/cluster_text.h"
#include "cli/node_client.h"

namespace lockstep {

LoadWatch::Said LoadWatch::look(const Json& status, Clock::time_point now) {
  const auto models = list_in(status, "models");
  const auto model = std::find_if(models.begin(), models.end(),
                                  [&](const Json& one) { return text_in(one, "name") == name_; });
  if (model == models.end()) return {State::kGone, "somebody has unloaded " + name_};
  const std::string phase = text_in(*model, "phase");
  const std::string sentence = text_in(*model, "sentence");
  if (phase == "ready") return {State::kReady, placed_on(*model)};
  const std::string progress = phase + (sentence.empty() ? "" : ": " + sentence);
  if (phase != "waiting" || sentence.empty()) {
    waits_since_.reset();
    return {State::kWaiting, progress};
  }
  if (!waits_since_) waits_since_ = now;
  if (now - *waits_since_ < kPatience) return {State::kWaiting, progress};
  return {State::kRefused, sentence};
}

}  // namespace lockstep
