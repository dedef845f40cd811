#include "node/fetch/model_copies.h"

#include <algorithm>

#include "base/log.h"

namespace lockstep {

std::optional<NodeId> copy_keeper(std::span<const RankPart> ranks, const std::set<NodeId>& alive) {
  if (ranks.empty()) return std::nullopt;
  const NodeId& holder = ranks.front().node;
  const bool is_alone = std::all_of(ranks.begin(), ranks.end(),
                                    [&](const RankPart& rank) { return rank.node == holder; });
  if (!is_alone) return std::nullopt;
  auto next = alive.upper_bound(holder);
  if (next == alive.end()) next = alive.begin();
  if (next == alive.end() || *next == holder) return std::nullopt;
  return *next;
}

void ModelCopies::keep(const std::set<std::string>& paths) {
  std::erase_if(copies_, [&](const auto& copy) {
    if (paths.contains(copy.first)) return false;
    if (copy.second.fetch != 0) fetcher_.cancel(copy.second.fetch);
    return true;
  });
  for (const std::string& path : paths) copies_.try_emplace(path);
  start_next();
}

void ModelCopies::start_next() {
  auto running = static_cast<size_t>(std::count_if(
      copies_.begin(), copies_.end(), [](const auto& copy) { return copy.second.fetch != 0; }));
  for (auto& [path, copy] : copies_) {
    if (running >= kAtOnce) return;
    if (copy.is_here || copy.is_waiting || copy.fetch != 0) continue;
    ++running;
    copy.fetch = fetcher_.fetch(
        path,
        {.on_progress = {}, .on_done = [this, path = path](const Result<FetchedModel>& fetched) {
           on_done(path, fetched);
         }});
  }
}

// A cancelled fetch may still report.
void ModelCopies::on_done(const std::string& path, const Result<FetchedModel>& fetched) {
  const auto found = copies_.find(path);
  if (found == copies_.end()) return start_next();
  Copy& copy = found->second;
  copy.fetch = 0;
  copy.is_here = fetched.ok();
  if (!fetched.ok()) {
    log_warn("node: {} stays on only one disk for now: {}", path, fetched.error().message);
    copy.is_waiting = true;
    copy.retry = loop_.call_after(kRetryAfter, [this, path] {
      const auto again = copies_.find(path);
      if (again != copies_.end()) again->second.is_waiting = false;
      start_next();
    });
  }
  start_next();
}

}  // namespace lockstep
