#include "node/fetch/share_copies.h"

#include <utility>

#include "base/log.h"

namespace lockstep {

// The first check is delayed too: right after a placement nodes still fetch what their ranks read.
void ShareCopies::keep(const std::map<std::string, RankPlan>& plans) {
  for (auto model = models_.begin(); model != models_.end();) {
    const auto plan = plans.find(model->first);
    if (plan != plans.end() && plan->second == model->second.plan) {
      ++model;
      continue;
    }
    if (model->second.request != 0) fetcher_.cancel(model->second.request);
    model->second.timer.cancel();
    model = models_.erase(model);
  }
  for (const auto& [path, plan] : plans) {
    const auto [found, is_new] = models_.try_emplace(path);
    if (!is_new) continue;
    found->second.plan = plan;
    look_later(path, found->second);
  }
}

bool ShareCopies::is_kept_whole(const std::string& path) const {
  const auto found = models_.find(path);
  return found != models_.end() && found->second.is_kept_whole;
}

void ShareCopies::look_later(const std::string& path, Model& model) {
  model.timer = loop_.call_after(fetcher_.copies_every(), [this, path] { look(path); });
}

void ShareCopies::look(const std::string& path) {
  const auto found = models_.find(path);
  if (found == models_.end() || found->second.request != 0) return;
  found->second.request = fetcher_.keep_copies(
      path, found->second.plan, true,
      {.on_progress = {},
       .on_done = [this, path](const Result<FetchedModel>& outcome) { on_done(path, outcome); }});
}

// A cancelled request may still report.
void ShareCopies::on_done(const std::string& path, const Result<FetchedModel>& outcome) {
  const auto found = models_.find(path);
  if (found == models_.end()) return;
  Model& model = found->second;
  model.request = 0;
  const bool has_failed = !outcome.ok() && outcome.error().code != ErrorCode::kCancelled;
  const std::string failure = has_failed ? outcome.error().message : "";
  if (std::exchange(model.failure, failure) != failure && has_failed) {
    log_warn("node: parts of {} are not copied for now: {}", path, failure);
  }
  look_later(path, model);
  const bool is_kept_whole = outcome.ok() && !outcome.value().has_weights;
  if (outcome.ok() && std::exchange(model.is_kept_whole, is_kept_whole) != is_kept_whole) {
    on_whole_();
  }
}

}  // namespace lockstep
