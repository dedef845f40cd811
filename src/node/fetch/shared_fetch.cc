#include "node/fetch/shared_fetch.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

constexpr uint32_t kMachineBits = 0x7fffffff;
constexpr double kNewRateWeight = 0.25;

bool may_pass(const Error& error) {
  return error.code == ErrorCode::kPeerLost || error.code == ErrorCode::kTimeout ||
         error.code == ErrorCode::kExhausted;
}

// Links whose speeds differ by less than a factor of two count as equally fast.
int speed_class(double bytes_per_s) {
  return bytes_per_s > 0 ? static_cast<int>(std::log2(bytes_per_s)) : 1 << 10;
}

}  // namespace

int machine_of(const NodeId& node) {
  uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | std::to_integer<uint32_t>(node.bytes()[i]);
  return static_cast<int>(number & kMachineBits);
}

void SharedFetch::use_files(ModelFiles files, std::shared_ptr<PieceStore> store) {
  const std::lock_guard lock(mutex_);
  files_ = std::make_shared<const ModelFiles>(std::move(files));
  store_ = std::move(store);
}

std::shared_ptr<const ModelFiles> SharedFetch::files() const {
  const std::lock_guard lock(mutex_);
  return files_;
}

std::shared_ptr<PieceStore> SharedFetch::store() const {
  const std::lock_guard lock(mutex_);
  return store_;
}

std::string SharedFetch::commit() const {
  const std::lock_guard lock(mutex_);
  return files_ ? files_->commit : "";
}

FetchStatus SharedFetch::own_status() const {
  const std::lock_guard lock(mutex_);
  return {.commit = files_ ? files_->commit : "",
          .is_whole = false,
          .wants = true,
          .uses_hub = uses_hub_locked(),
          .received = received.load(std::memory_order_relaxed)};
}

void SharedFetch::allow_hub() {
  const std::lock_guard lock(mutex_);
  may_use_hub_ = true;
}

void SharedFetch::note_hub_failure(const Error& error) {
  const std::lock_guard lock(mutex_);
  hub_error_ = error;
  if (!may_pass(error)) may_use_hub_ = false;
  hub_again_at_ = Clock::now() + times_.hub_pause;
}

bool SharedFetch::uses_hub() const {
  const std::lock_guard lock(mutex_);
  return uses_hub_locked();
}

bool SharedFetch::uses_hub_locked() const {
  return may_use_hub_ && Clock::now() >= hub_again_at_;
}

std::optional<Error> SharedFetch::hub_error() const {
  const std::lock_guard lock(mutex_);
  return hub_error_;
}

void SharedFetch::set_state(const HubFile& file, uint32_t piece, PieceState state) {
  const std::lock_guard lock(mutex_);
  if (state == PieceState::kIdle) {
    states_.erase({file.hash, piece});
  } else {
    states_[{file.hash, piece}] = state;
  }
}

PieceState SharedFetch::state(const std::string& file_hash, uint32_t piece) const {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find({file_hash, piece});
  return found == states_.end() ? PieceState::kIdle : found->second;
}

bool SharedFetch::begin_refresh() {
  const std::lock_guard lock(mutex_);
  if (is_refreshing_ || Clock::now() < refreshed_at_ + times_.refresh) return false;
  is_refreshing_ = true;
  return true;
}

void SharedFetch::end_refresh() {
  const std::lock_guard lock(mutex_);
  is_refreshing_ = false;
  refreshed_at_ = Clock::now();
}

std::vector<NodeId> SharedFetch::due(const std::vector<NodeId>& connected) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  std::erase_if(others_, [&](const auto& entry) {
    return std::find(connected.begin(), connected.end(), entry.first) == connected.end();
  });
  std::vector<NodeId> due;
  for (const NodeId& node : connected) {
    if (node != self_ && now >= others_[node].left_alone_until) due.push_back(node);
  }
  others_.erase(self_);
  return due;
}

void SharedFetch::note(const NodeId& node, const FetchStatus& status) {
  const std::lock_guard lock(mutex_);
  Other& other = others_[node];
  const bool begins = status.wants && !other.status.wants;
  if (begins || other.status.received != status.received) other.moved_at = Clock::now();
  other.status = status;
  other.was_asked = true;
  other.left_alone_until = {};
}

void SharedFetch::note_asker(const NodeId& node, const PieceAsk& ask) {
  const std::lock_guard lock(mutex_);
  Other& other = others_[node];
  if (ask.wants && !other.status.wants) other.moved_at = Clock::now();
  other.status.wants = ask.wants;
  other.status.uses_hub = ask.uses_hub;
  if (!ask.commit.empty()) other.status.commit = ask.commit;
}

bool SharedFetch::note_failure(const NodeId& node) {
  const std::lock_guard lock(mutex_);
  const auto found = others_.find(node);
  if (found == others_.end()) return false;
  const auto now = Clock::now();
  const bool is_first = now >= found->second.left_alone_until;
  found->second.status = {};
  found->second.was_asked = true;
  found->second.left_alone_until = now + times_.retry;
  return is_first;
}

bool SharedFetch::is_one_unheard() const {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  return std::any_of(others_.begin(), others_.end(),
                     [&](const auto& entry) { return now < entry.second.left_alone_until; });
}

bool SharedFetch::is_one_new(const std::vector<NodeId>& connected) {
  const std::lock_guard lock(mutex_);
  const bool is_any = std::any_of(connected.begin(), connected.end(), [&](const NodeId& node) {
    const auto found = others_.find(node);
    return node != self_ && (found == others_.end() || !found->second.was_asked);
  });
  if (is_any) refreshed_at_ = {};
  return is_any;
}

void SharedFetch::note_rate(int machine, uint64_t bytes, std::chrono::duration<double> took) {
  const double rate = static_cast<double>(bytes) / std::max(took.count(), 1e-6);
  const std::lock_guard lock(mutex_);
  for (auto& [node, other] : others_) {
    if (machine_of(node) != machine) continue;
    other.bytes_per_s = other.bytes_per_s == 0
                            ? rate
                            : other.bytes_per_s * (1 - kNewRateWeight) + rate * kNewRateWeight;
  }
}

std::vector<int> SharedFetch::holders() const {
  const std::lock_guard lock(mutex_);
  struct Holder {
    int speed = 0;
    uint32_t distance = 0;  // so that nodes do not all ask the same one first
    int machine = 0;
  };
  std::vector<Holder> found;
  const auto self = static_cast<uint32_t>(machine_of(self_));
  for (const auto& [node, other] : others_) {
    const bool may_have_some = other.status.wants && other.status.commit.empty();
    if (!files_ || (other.status.commit != files_->commit && !may_have_some)) continue;
    const int machine = machine_of(node);
    found.push_back({speed_class(other.bytes_per_s),
                     (static_cast<uint32_t>(machine) - self) & kMachineBits, machine});
  }
  std::sort(found.begin(), found.end(), [](const Holder& a, const Holder& b) {
    return a.speed != b.speed ? a.speed > b.speed : a.distance < b.distance;
  });
  std::vector<int> machines;
  for (const Holder& holder : found) machines.push_back(holder.machine);
  return machines;
}

bool SharedFetch::is_fetching_locked(const Other& other, Clock::time_point now) const {
  return other.status.wants && other.status.uses_hub && files_ &&
         other.status.commit == files_->commit && now - other.moved_at < times_.stuck_after;
}

std::vector<int> SharedFetch::fetchers() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> machines;
  const auto now = Clock::now();
  if (uses_hub_locked()) machines.push_back(machine_of(self_));
  for (const auto& [node, other] : others_) {
    if (is_fetching_locked(other, now)) machines.push_back(machine_of(node));
  }
  std::sort(machines.begin(), machines.end());
  return machines;
}

std::map<NodeId, FetchStatus> SharedFetch::others() const {
  const std::lock_guard lock(mutex_);
  std::map<NodeId, FetchStatus> statuses;
  for (const auto& [node, other] : others_) statuses[node] = other.status;
  return statuses;
}

std::optional<NodeId> SharedFetch::node_of(int machine) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [node, other] : others_) {
    if (machine_of(node) == machine) return node;
  }
  return std::nullopt;
}

void FetchBoard::add(std::shared_ptr<SharedFetch> fetch) {
  const std::lock_guard lock(mutex_);
  fetches_[fetch->model()] = std::move(fetch);
}

void FetchBoard::remove(const std::string& model) {
  const std::lock_guard lock(mutex_);
  fetches_.erase(model);
}

std::shared_ptr<SharedFetch> FetchBoard::find(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  const auto found = fetches_.find(model);
  return found == fetches_.end() ? nullptr : found->second;
}

}  // namespace lockstep
