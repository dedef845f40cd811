#include "engine/store/page_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "engine/store/page_store_thread.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// Reading a full folder takes a second or less on a local disk.
constexpr std::chrono::seconds kOpenWait{5};
constexpr std::chrono::seconds kEndWait{1};
// After a request for an unknown page the folder is read again, but no more often than this.
constexpr std::chrono::milliseconds kLookAgain{250};
constexpr std::chrono::seconds kHangTime{60};
// Pages whose files wait to be removed; beyond this it is unknown which pages are valid.
constexpr size_t kForgottenMax = size_t{1} << 16;

}  // namespace

struct PageStore::Shared : PageStoreThread {
  using PageStoreThread::PageStoreThread;

  std::thread thread;
  Clock::time_point looked{};  // like the next field, used by the engine's thread only
  bool is_spoilt = false;

  bool is_off() const { return !reads_are_on() || is_spoilt; }
};

Result<std::unique_ptr<PageStore>> PageStore::open(PageStoreOptions options) {
  LOCKSTEP_CHECK(options.shape.page_bytes() > 0);
  auto shared = std::make_shared<Shared>(std::move(options));
  auto store = std::unique_ptr<PageStore>(new PageStore(shared));
  shared->thread = std::thread([shared] { shared->run(); });
  PageStoreThread::Lock lock(shared->mutex);
  shared->changed.wait_for(lock, kOpenWait,
                           [&] { return shared->is_indexed || shared->has_ended; });
  if (!shared->opened) {
    return Error{ErrorCode::kTimeout,
                 fmt::format("the disk of {} does not answer", shared->options.folder.string())};
  }
  if (!shared->opened->ok()) return shared->opened->error();
  lock.unlock();
  return store;
}

PageStore::PageStore(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

PageStore::~PageStore() {
  PageStoreThread::Lock lock(shared_->mutex);
  shared_->is_stopping = true;
  shared_->changed.notify_all();
  const bool has_ended =
      shared_->changed.wait_for(lock, kEndWait, [this] { return shared_->has_ended; });
  lock.unlock();
  if (!shared_->thread.joinable()) return;
  if (has_ended) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();  // the disk hangs: the thread keeps what it uses
  }
}

size_t PageStore::page_bytes() const {
  return shared_->options.shape.page_bytes();
}

bool PageStore::contains(const PageKey& key) const {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->is_off() || shared_->forgotten.contains(key)) return false;
  if (shared_->index.is_whole(key) || shared_->slot_of(key) != nullptr) return true;
  const Clock::time_point now = Clock::now();
  if (!shared_->look_at && now - shared_->looked > kLookAgain) {
    shared_->look_at = shared_->looked = now;
    shared_->changed.notify_all();
  }
  return false;
}

bool PageStore::has_room() const {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->is_off() || Clock::now() < shared_->saves_off_until) return false;
  return std::any_of(shared_->slots.begin(), shared_->slots.end(), [](const auto& slot) {
    return slot.state == PageStoreThread::Slot::kFree || slot.state == PageStoreThread::Slot::kLent;
  });
}

std::optional<std::span<std::byte>> PageStore::begin_save() {
  if (!has_room()) return {};
  const std::lock_guard lock(shared_->mutex);
  PageStoreThread::Slot* chosen = nullptr;
  for (PageStoreThread::Slot& slot : shared_->slots) {
    if (slot.state == PageStoreThread::Slot::kLent) chosen = &slot;  // not given back
    if (slot.state == PageStoreThread::Slot::kFree && chosen == nullptr) chosen = &slot;
  }
  LOCKSTEP_CHECK(chosen != nullptr);  // only this thread takes slots
  chosen->state = PageStoreThread::Slot::kLent;
  return std::span(chosen->bytes);
}

void PageStore::save(const PageKey& key) {
  const std::lock_guard lock(shared_->mutex);
  const auto lent =
      std::find_if(shared_->slots.begin(), shared_->slots.end(),
                   [](const auto& slot) { return slot.state == PageStoreThread::Slot::kLent; });
  LOCKSTEP_CHECK(lent != shared_->slots.end());
  lent->key = key;
  lent->order = shared_->next_order++;
  lent->state = PageStoreThread::Slot::kWaiting;
  shared_->changed.notify_all();
}

Status PageStore::flush(std::chrono::milliseconds deadline) {
  PageStoreThread::Lock lock(shared_->mutex);
  const bool is_done = shared_->changed.wait_for(lock, deadline, [this] {
    return std::none_of(shared_->slots.begin(), shared_->slots.end(), [](const auto& slot) {
      return slot.state == PageStoreThread::Slot::kWaiting ||
             slot.state == PageStoreThread::Slot::kWriting;
    });
  });
  if (is_done) return Ok{};
  return Error{ErrorCode::kTimeout,
               fmt::format("the disk did not write the cache within {} ms", deadline.count())};
}

Status PageStore::load(const PageKey& key, std::span<std::byte> page,
                       std::chrono::milliseconds deadline) {
  LOCKSTEP_CHECK(page.size() == page_bytes());
  using Load = PageStoreThread::Load;
  PageStoreThread::Lock lock(shared_->mutex);
  if (shared_->is_off() || shared_->forgotten.contains(key)) {
    return Error{ErrorCode::kNotFound, "the page is not on the disk"};
  }
  if (const auto* slot = shared_->slot_of(key)) {
    std::copy(slot->bytes.begin(), slot->bytes.end(), page.begin());
    return Ok{};
  }
  Load& load = shared_->load;
  load.state = Load::kAsked;
  load.key = key;
  load.is_given_up = false;
  shared_->changed.notify_all();
  const bool is_done =
      shared_->changed.wait_for(lock, deadline, [&] { return load.state == Load::kDone; });
  if (!is_done) {
    load.is_given_up = load.state == Load::kReading;
    if (load.state == Load::kAsked) load.state = Load::kNone;
    shared_->reads_off_until = Clock::now() + kHangTime;
    Error error{ErrorCode::kTimeout,
                fmt::format("{} did not return a page within {} ms",
                            shared_->options.folder.string(), deadline.count())};
    shared_->warn(error);
    return error;
  }
  load.state = Load::kNone;
  if (load.error) return *load.error;
  std::copy(load.bytes.begin(), load.bytes.end(), page.begin());
  return Ok{};
}

void PageStore::forget(const PageKey& key) {
  const std::lock_guard lock(shared_->mutex);
  shared_->index.erase(key);
  shared_->is_spoilt = shared_->is_spoilt || shared_->forgotten.size() >= kForgottenMax;
  if (!shared_->is_spoilt) shared_->forgotten.insert(key);
  for (PageStoreThread::Slot& slot : shared_->slots) {
    const bool waits = slot.state == PageStoreThread::Slot::kWaiting;
    if (waits && slot.key == key) slot.state = PageStoreThread::Slot::kFree;
  }
  shared_->changed.notify_all();
}

void PageStore::begin_epoch() {
  const std::lock_guard lock(shared_->mutex);
  shared_->reads_off_until = {};  // a load still in progress keeps it off
}

PageStore::Counts PageStore::counts() const {
  const std::lock_guard lock(shared_->mutex);
  Counts counts = shared_->counts;
  counts.pages = shared_->index.whole_pages();
  return counts;
}

}  // namespace lockstep
