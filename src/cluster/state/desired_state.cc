#include "cluster/state/desired_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "base/utf8.h"
#include "cluster/fingerprint.h"
#include "cluster/state/desired_json.h"

namespace lockstep {
namespace {

Error invalid(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

Status check_name(std::string_view name, std::string_view what) {
  if (name.empty() || name.size() > kModelNameBytesMax) {
    return invalid(fmt::format("{} has {} bytes, it must have 1 to {}", what, name.size(),
                               kModelNameBytesMax));
  }
  const bool is_plain = std::none_of(name.begin(), name.end(),
                                     [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (!is_plain || !is_valid_utf8(name)) {
    return invalid(fmt::format("{} must be text without control characters", what));
  }
  return Ok{};
}

bool is_no_path(std::string_view name) {
  if (name.find('\\') != std::string_view::npos) return false;
  for (std::string_view rest = name;;) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == rest.size()) return true;
    rest.remove_prefix(part.size() + 1);
  }
}

Status check_no_path(std::string_view name, std::string_view what) {
  if (is_no_path(name)) return Ok{};
  return invalid(fmt::format("{} '{}' looks like a path: choose one such as org/name", what, name));
}

// The later stamp wins; among equal ones, which only a broken node writes, the larger text.
bool replaces(const DesiredEntry& entry, const DesiredEntry& held) {
  if (entry.stamp != held.stamp) return entry.stamp > held.stamp;
  return entry_text(entry) > entry_text(held);
}

}  // namespace

bool DesiredEntry::has_answers_of(const DesiredEntry& other) const {
  return path == other.path && promises.kv == other.promises.kv;
}

bool DesiredEntry::reads(std::string_view model) const {
  return model == path || (!draft_model.empty() && model == draft_model);
}

Status check_entry(const DesiredEntry& entry) {
  TRY(check_name(entry.name, "the model's name"));
  for (const std::string& path : {entry.path, entry.draft_model}) {
    if (path.size() > kModelPathBytesMax || !is_valid_utf8(path)) {
      return invalid(fmt::format("the path of model '{}' must be text of at most {} bytes",
                                 entry.name, kModelPathBytesMax));
    }
  }
  const ModelPromises& promises = entry.promises;
  for (const int64_t number :
       {promises.context, promises.streams, promises.parallel, promises.idle_unload_s}) {
    if (number < 0 || number > kPromiseMax) {
      return invalid(fmt::format("the promises of model '{}' must be from 0 to {}, not {}",
                                 entry.name, kPromiseMax, number));
    }
  }
  if (promises.kv.size() > kKvNameBytesMax || !is_valid_utf8(promises.kv)) {
    return invalid(
        fmt::format("the kind of keys and values of model '{}' must be a name of at most {} bytes",
                    entry.name, kKvNameBytesMax));
  }
  if (promises.replicas < 1 || promises.replicas > kReplicasMax) {
    return invalid(fmt::format("model '{}' may have 1 to {} replicas, not {}", entry.name,
                               kReplicasMax, promises.replicas));
  }
  if (promises.aliases.size() > kAliasesMax || promises.pinned.size() > kPinnedMax) {
    return invalid(fmt::format("model '{}' may have at most {} aliases and {} pinned nodes",
                               entry.name, kAliasesMax, kPinnedMax));
  }
  for (const std::string& alias : promises.aliases) TRY(check_name(alias, "an alias"));
  if (entry.stamp.time_ms < 0 || entry.stamp.time_ms > kStampMsMax || entry.stamp.counter < 0 ||
      entry.stamp.counter > kStampCounterMax) {
    return invalid(fmt::format(
        "the stamp of model '{}' is not a time before the year 2200: set the clock of node {}",
        entry.name, entry.stamp.node.short_text()));
  }
  return Ok{};
}

Status check_wish(const DesiredEntry& entry) {
  TRY(check_entry(entry));
  if (!entry.wanted) return Ok{};  // anything may be unloaded, whatever its name
  TRY(check_no_path(entry.name, "the model's name"));
  for (const std::string& alias : entry.promises.aliases) TRY(check_no_path(alias, "the alias"));
  return Ok{};
}

int64_t placement_key(const DesiredEntry& entry) {
  DesiredEntry placed = entry;
  placed.stamp = {};
  placed.promises.aliases.clear();
  placed.promises.idle_unload_s = 0;
  return fingerprint(entry_text(placed));
}

Status DesiredState::put(const DesiredEntry& entry) {
  TRY(check_wish(entry));
  const DesiredEntry* held = find(entry.name);
  if (held != nullptr && entry.stamp <= held->stamp) {
    return invalid(fmt::format("model '{}' was changed later than this", entry.name));
  }
  const auto live =
      static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [&](const auto& item) {
        return item.second.wanted && item.first != entry.name;
      }));
  if (entry.wanted && live >= kDesiredLiveMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} models are already loaded or on demand, unload one before '{}'",
                             live, entry.name)};
  }
  if (held == nullptr && entries_.size() >= kDesiredNamesMax && oldest()->second.wanted) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} names of models are known; load or unload '{}' again to make room",
                             entries_.size(), oldest()->first)};
  }
  merge(entry);
  return Ok{};
}

bool DesiredState::merge(const DesiredEntry& entry) {
  const DesiredEntry* held = find(entry.name);
  if (held != nullptr && !replaces(entry, *held)) return false;
  set(entry);
  if (entries_.size() <= kDesiredNamesMax) return true;
  // Stamps alone decide which names are kept, so the order of merges does not matter.
  const auto dropped = oldest();
  const bool is_new = dropped->first != entry.name;
  digest_ ^= fingerprint(entry_text(dropped->second));
  entries_.erase(dropped);
  return is_new;
}

bool DesiredState::merge(const DesiredState& other) {
  bool changed = false;
  for (const auto& [name, entry] : other.entries_) changed |= merge(entry);
  return changed;
}

const DesiredEntry* DesiredState::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

void DesiredState::set(const DesiredEntry& entry) {
  DesiredEntry& held = entries_[entry.name];
  if (!held.name.empty()) digest_ ^= fingerprint(entry_text(held));
  held = entry;
  digest_ ^= fingerprint(entry_text(held));
}

std::map<std::string, DesiredEntry, std::less<>>::const_iterator DesiredState::oldest() const {
  return std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.stamp, a.first) < std::tie(b.second.stamp, b.first);
  });
}

}  // namespace lockstep
