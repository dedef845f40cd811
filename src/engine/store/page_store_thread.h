// PageStoreThread: the state of the page store (engine/store/page_store.h) that its two threads
// share, and the work of the disk thread. The engine's thread queues requests under the lock and
// continues; the disk is accessed without the lock. Loads come first, then removals, then writes,
// then a look at what other processes have done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "engine/store/page_folder.h"
#include "engine/store/page_index.h"
#include "engine/store/page_store.h"

namespace lockstep {

class PageStoreThread {
 public:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  // A page on its way to the disk.
  struct Slot {
    enum State { kFree, kLent, kWaiting, kWriting };
    State state = kFree;
    PageKey key{};
    uint64_t order = 0;  // among those that wait, the lowest is written first
    std::vector<std::byte> bytes;
  };
  // The one load that may be in progress.
  struct Load {
    enum State { kNone, kAsked, kReading, kDone };
    State state = kNone;
    bool is_given_up = false;  // nothing waits for it any more
    PageKey key{};
    std::optional<Error> error;
    std::vector<std::byte> bytes;
  };

  explicit PageStoreThread(PageStoreOptions store_options);

  // Runs until `is_stopping`. First it opens the folder.
  void run();

  // `mutex` guards everything below except `options` and the bytes of slots and of the load.
  const PageStoreOptions options;
  std::mutex mutex;
  std::condition_variable changed;  // either thread has something for the other
  PageIndex index;
  std::vector<Slot> slots;
  Load load;
  std::unordered_set<PageKey, PageKeyHash> forgotten;  // their files may still exist
  std::optional<Status> opened;                        // once known
  bool is_indexed = false;                             // the folder was read once
  bool is_stopping = false;
  bool has_ended = false;
  bool has_warned = false;
  Clock::time_point reads_off_until{};
  Clock::time_point saves_off_until{};
  std::optional<Clock::time_point> look_at;  // when to look at the folder again
  uint64_t next_order = 0;
  PageStore::Counts counts;

  bool is_free_of_disk() const { return load.state == Load::kNone; }
  bool reads_are_on() const { return is_free_of_disk() && Clock::now() >= reads_off_until; }
  const Slot* slot_of(const PageKey& key) const;
  // Logs one line in the store's lifetime about a failing disk.
  void warn(const Error& error);

 private:
  // False if there is nothing to do now.
  bool work(PageFolder& folder, Lock& lock);
  void read(PageFolder& folder, Lock& lock);
  void write(PageFolder& folder, Slot& slot, Lock& lock);
  void remove(PageFolder& folder, Lock& lock);
  void look(PageFolder& folder, Lock& lock);
  Slot* next_slot();
};

}  // namespace lockstep
