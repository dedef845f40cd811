#include "node/cluster/cluster_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/threads/guarded.h"
#include "cluster/state/desired_json.h"
#include "model/load/shape_model.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kModelsKeptMax = kDesiredLiveMax;
constexpr size_t kPlansKeptMax = 4 * kModelsKeptMax;
constexpr size_t kPlannedFilesMax = 4096;        // of a model's folder
constexpr std::chrono::seconds kLooksAgain{10};  // before checking files that were read
constexpr std::chrono::seconds kTriesAgain{1};   // after a failed read

uint64_t file_key(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error).time_since_epoch().count();
  return Fnv()
      .add(path.filename().string())
      .add(static_cast<uint64_t>(fs::file_size(path, error)))
      .add(static_cast<uint64_t>(time))
      .value();
}

// Changes when a file of the model does; independent of directory order.
uint64_t files_key(const std::string& model) {
  std::error_code error;
  if (is_shape_model(model)) return 1;
  if (!fs::is_directory(model, error)) return file_key(model);
  uint64_t key = 1;
  size_t count = 0;
  auto item = fs::directory_iterator(model, error);
  for (; !error && item != fs::directory_iterator() && count < kPlannedFilesMax;
       item.increment(error)) {
    if (item->is_regular_file(error)) key += file_key(item->path());
    ++count;
  }
  return key;
}

// All inputs of a plan but the round trips, which change all the time.
std::string inputs_of(const DesiredEntry& entry, size_t groups, std::span<const NodeOffer> offers) {
  std::string inputs = fmt::format("{} {}", groups, entry_text(entry));
  for (const NodeOffer& offer : offers) {
    inputs += fmt::format("\n{} {} {} {} {} {}", offer.node.text(), offer.name, offer.free_bytes,
                          offer.speed, offer.operations_s, offer.link_bytes_s);
  }
  return inputs;
}

bool is_same_error(const Error& a, const Error& b) {
  return a.code == b.code && a.message == b.message;
}

}  // namespace

void ClusterPlanner::set_on_facts(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  on_facts_ = std::move(call);
}

PlanFunction ClusterPlanner::function() {
  return [this](const DesiredEntry& entry, size_t groups, std::span<const NodeOffer> offers) {
    return plan(entry, groups, offers);
  };
}

Result<std::vector<RankPlan>> ClusterPlanner::plan(const DesiredEntry& entry, size_t groups,
                                                   std::span<const NodeOffer> offers) {
  const auto facts = TRY(facts_of(entry));
  std::string inputs = inputs_of(entry, groups, offers);
  const Error awaited{ErrorCode::kTimeout,
                      fmt::format("a place for model '{}' is being looked for", entry.name)};
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& plan) {
      return plan.facts == facts && plan.inputs == inputs;
    });
    if (known != plans_.end()) return known->result ? *known->result : awaited;
    if (plans_.size() == kPlansKeptMax) plans_.pop_front();
    plans_.push_back({inputs, facts, std::nullopt});
  }
  const bool is_posted = planning_.post(
      [this, entry, groups, facts, inputs,
       own = std::vector<NodeOffer>(offers.begin(), offers.end())]() -> DiskThread::Then {
        auto make = [&] { return plan_groups(entry, *facts, groups, own); };
        // Runs only while this object, which owns the thread, exists.
        return [this, inputs, facts, made = guarded(make)] { finish_plan(inputs, facts, made); };
      });
  if (!is_posted) {
    const std::lock_guard lock(mutex_);
    std::erase_if(plans_, [&](const Plan& plan) { return !plan.result && plan.inputs == inputs; });
  }
  return awaited;
}

void ClusterPlanner::finish_plan(const std::string& inputs,
                                 const std::shared_ptr<const PlannedModel>& facts,
                                 Result<std::vector<RankPlan>> result) {
  const std::lock_guard lock(mutex_);
  for (Plan& plan : plans_) {
    if (plan.facts == facts && plan.inputs == inputs) plan.result = result;
  }
  if (on_facts_) on_facts_();
}

// Cached facts are used at once, and checked in parallel.
ClusterPlanner::Facts ClusterPlanner::facts_of(const DesiredEntry& entry) {
  const auto now = Clock::now();
  std::unique_lock lock(mutex_);
  const PlannedSources sources{.model = entry.path,
                               .draft_model = entry.draft_model,
                               .ngrams_on_disk = entry.promises.ngrams_on_disk};
  make_room(sources);
  Known& known = known_[sources];
  known.used_at = now;
  const bool has_facts = known.reading && known.reading->facts.ok();
  const auto age_max = has_facts ? kLooksAgain : kTriesAgain;
  const bool is_due = !known.is_reading && (!known.reading || now - known.read_at >= age_max);
  const auto reading = known.reading;
  if (is_due) known.is_reading = true;
  lock.unlock();
  if (is_due) start_reading(sources, reading);
  if (reading) return reading->facts;
  return Error{ErrorCode::kTimeout,
               fmt::format("the table of weights of model '{}' is being read", entry.name)};
}

void ClusterPlanner::make_room(const PlannedSources& keep) {
  if (known_.size() < kModelsKeptMax || known_.contains(keep)) return;
  auto oldest = known_.end();
  for (auto item = known_.begin(); item != known_.end(); ++item) {
    if (oldest == known_.end() || item->second.used_at < oldest->second.used_at) oldest = item;
  }
  known_.erase(oldest);
}

void ClusterPlanner::start_reading(const PlannedSources& sources,
                                   const std::optional<Reading>& before) {
  const bool is_posted =
      disk_.post([this, sources, before, resolve = resolve_]() -> DiskThread::Then {
        auto read_now = [&]() -> Result<std::optional<Reading>> {
          return read(resolve, sources, before);
        };
        auto result = guarded(read_now);
        auto reading = result.ok() ? std::move(result.value()) : Reading{.facts = result.error()};
        // Runs only while this object, which owns the thread, exists.
        return [this, sources, reading = std::move(reading)] { finish_reading(sources, reading); };
      });
  if (!is_posted) finish_reading(sources, std::nullopt);
}

// Nullopt if nothing has changed.
std::optional<ClusterPlanner::Reading> ClusterPlanner::read(const Resolve& resolve,
                                                            const PlannedSources& sources,
                                                            const std::optional<Reading>& before) {
  Reading reading{.facts = Error{ErrorCode::kInternal, ""}};
  const Result<std::string> model = resolve(sources.model);
  const bool has_draft = !sources.draft_model.empty();
  const Result<std::string> draft = has_draft ? resolve(sources.draft_model) : std::string();
  if (!model.ok() || !draft.ok()) {
    reading.facts = model.ok() ? draft.error() : model.error();
  } else {
    reading.files =
        Fnv().add(files_key(model.value())).add(has_draft ? files_key(draft.value()) : 0).value();
    if (before && before->facts.ok() && before->files == reading.files) return std::nullopt;
    const auto facts = [&]() -> Facts {
      return std::make_shared<const PlannedModel>(
          TRY(read_planned_model({.model = model.value(),
                                  .draft_model = draft.value(),
                                  .ngrams_on_disk = sources.ngrams_on_disk},
                                 PartialFiles::kTables)));
    };
    reading.facts = facts();
  }
  const bool is_as_before = before && !before->facts.ok() && !reading.facts.ok() &&
                            is_same_error(before->facts.error(), reading.facts.error());
  if (is_as_before) return std::nullopt;
  return reading;
}

void ClusterPlanner::finish_reading(const PlannedSources& sources, std::optional<Reading> reading) {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(sources);
  if (known == known_.end()) return;  // evicted for others
  known->second.is_reading = false;
  known->second.read_at = Clock::now();
  if (!reading) return;
  known->second.reading = std::move(reading);
  if (on_facts_) on_facts_();
}

}  // namespace lockstep
