#include "engine/store/page_store_thread.h"

#include <utility>

#include "base/log.h"

namespace lockstep {
namespace {

// A disk that refused is retried after this.
constexpr std::chrono::seconds kOffTime{60};

// Puts the page together from the existing files. Returns the last error, or the one about a broken
// file if there is one.
Status read_page(PageFolder& folder, const PageKey& key, const std::vector<PageShape>& parts,
                 PagePart& page) {
  Error error{ErrorCode::kNotFound, "the page is no longer on the disk"};
  for (const PageShape& part : parts) {
    if (page.is_whole()) break;
    if (!page.lacks(part)) continue;
    Status status = folder.read(key, part, page);
    if (!status.ok() && error.code != ErrorCode::kCorrupt) error = std::move(status.error());
  }
  return page.is_whole() ? Status(Ok{}) : Status(std::move(error));
}

}  // namespace

PageStoreThread::PageStoreThread(PageStoreOptions store_options)
    : options(std::move(store_options)), index(options.shape) {
  const size_t page_bytes = options.shape.page_bytes();
  const bool has_states = options.kind == PageFileKind::kState;
  slots.resize(has_states ? staged_states(page_bytes) : staged_pages(page_bytes));
  for (Slot& slot : slots) slot.bytes.resize(page_bytes);
  load.bytes.resize(page_bytes);
}

void PageStoreThread::run() {
  auto folder = PageFolder::open({.folder = options.folder,
                                  .bytes_max = options.bytes_max,
                                  .model = options.model,
                                  .block_bytes = options.shape.block_bytes,
                                  .kind = options.kind});
  Lock lock(mutex);
  opened = folder.ok() ? Status(Ok{}) : Status(folder.error());
  if (folder.ok()) {
    counts.bytes = folder.value().bytes();
    look(folder.value(), lock);
    is_indexed = true;
    changed.notify_all();
    while (!is_stopping) {
      if (work(folder.value(), lock)) {
        changed.notify_all();
      } else if (look_at) {
        changed.wait_until(lock, *look_at);
      } else {
        changed.wait(lock);
      }
    }
  }
  has_ended = true;
  changed.notify_all();
}

bool PageStoreThread::work(PageFolder& folder, Lock& lock) {
  if (load.state == Load::kAsked) {
    read(folder, lock);
  } else if (!forgotten.empty()) {
    remove(folder, lock);
  } else if (Slot* slot = next_slot()) {
    write(folder, *slot, lock);
  } else if (look_at && Clock::now() >= *look_at) {
    look(folder, lock);
  } else {
    return false;
  }
  counts.bytes = folder.bytes();
  return true;
}

void PageStoreThread::read(PageFolder& folder, Lock& lock) {
  load.state = Load::kReading;
  const std::vector<PageShape> parts = index.parts_of(load.key);
  PagePart page{.shape = options.shape,
                .bytes = load.bytes,
                .is_there = std::vector<bool>(options.shape.blocks())};
  lock.unlock();
  Status status = read_page(folder, load.key, parts, page);
  lock.lock();
  if (status.ok()) {
    load.error.reset();
    ++counts.loaded;
  } else {
    load.error = std::move(status.error());
    index.erase(load.key);
    if (load.error->code == ErrorCode::kCorrupt) ++counts.dropped;
    if (load.error->code == ErrorCode::kInternal) {
      reads_off_until = Clock::now() + kOffTime;
      warn(*load.error);
    }
  }
  load.state = load.is_given_up ? Load::kNone : Load::kDone;
}

void PageStoreThread::remove(PageFolder& folder, Lock& lock) {
  const PageKey key = *forgotten.begin();
  lock.unlock();
  folder.remove(key);
  lock.lock();
  index.erase(key);
  forgotten.erase(key);
}

void PageStoreThread::write(PageFolder& folder, Slot& slot, Lock& lock) {
  const bool is_off = Clock::now() < saves_off_until;
  const bool is_there = index.is_whole(slot.key);
  slot.state = Slot::kWriting;
  lock.unlock();
  Status status{Ok{}};
  if (!is_off && !is_there) status = folder.write(slot.key, options.shape, slot.bytes);
  lock.lock();
  if (is_off || !status.ok()) ++counts.dropped;
  if (!status.ok()) {
    // A lock held by another process costs only this page; any other error is likely to recur.
    if (status.error().code != ErrorCode::kTimeout) saves_off_until = Clock::now() + kOffTime;
    warn(status.error());
  } else if (!is_off && !is_there) {
    ++counts.saved;
    index.add(slot.key, options.shape);
  }
  slot.state = Slot::kFree;
  if (folder.has_evicted()) look_at = Clock::now();
  if (!is_stopping && options.on_saved) options.on_saved();
}

void PageStoreThread::look(PageFolder& folder, Lock& lock) {
  look_at.reset();
  const size_t pages_before = index.whole_pages();
  for (size_t bucket = 0; bucket < kPageBuckets && !is_stopping; ++bucket) {
    if (load.state == Load::kAsked) read(folder, lock);
    changed.notify_all();
    lock.unlock();
    const std::optional<PageFiles> files = folder.changed_files(bucket);
    lock.lock();
    if (files) index.replace(bucket, *files);
  }
  if (index.whole_pages() > pages_before && !is_stopping && options.on_saved) options.on_saved();
}

PageStoreThread::Slot* PageStoreThread::next_slot() {
  Slot* next = nullptr;
  for (Slot& slot : slots) {
    if (slot.state == Slot::kWaiting && (next == nullptr || slot.order < next->order)) next = &slot;
  }
  return next;
}

const PageStoreThread::Slot* PageStoreThread::slot_of(const PageKey& key) const {
  for (const Slot& slot : slots) {
    const bool is_given = slot.state == Slot::kWaiting || slot.state == Slot::kWriting;
    if (is_given && slot.key == key) return &slot;
  }
  return nullptr;
}

void PageStoreThread::warn(const Error& error) {
  if (std::exchange(has_warned, true)) return;
  log_warn("the disk cache is not used for a while: {}", error.message);
}

}  // namespace lockstep
