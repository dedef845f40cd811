// PageStoreThread: the part of the store of pages (engine/page_store.h) that its two threads share,
// and what the thread of the disk does. The engine's thread asks under the lock and goes on; the
// disk is touched without the lock. Loads come first, then what is to be removed, then what is to
// be written, then a look at what other processes have done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "engine/page_folder.h"
#include "engine/page_index.h"
#include "engine/page_store.h"

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
    uint64_t order = 0;  // of those that wait, the lowest is written first
    std::vector<std::byte> bytes;
  };
  // The one load that may be under way.
  struct Load {
    enum State { kNone, kAsked, kReading, kDone };
    State state = kNone;
    bool is_given_up = false;  // nobody waits for it any more
    PageKey key{};
    std::optional<Error> error;
    std::vector<std::byte> bytes;
  };

  explicit PageStoreThread(PageStoreOptions store_options);

  // Until `is_stopping`. The first thing it does is to open the folder.
  void run();

  // All below under `mutex`; `options` and the bytes of slots and of the load apart.
  const PageStoreOptions options;
  std::mutex mutex;
  std::condition_variable changed;  // either thread has something for the other
  PageIndex index;
  std::vector<Slot> slots;
  Load load;
  std::unordered_set<PageKey, PageKeyHash> forgotten;  // files of theirs may be there yet
  std::optional<Status> opened;                        // once it is known
  bool is_indexed = false;                             // the folder was read once
  bool is_stopping = false;
  bool has_ended = false;
  bool has_warned = false;
  Clock::time_point reads_off_until{};
  Clock::time_point saves_off_until{};
  std::optional<Clock::time_point> look_at;  // when the folder is to be looked at again
  uint64_t next_order = 0;
  PageStore::Counts counts;

  bool is_free_of_disk() const { return load.state == Load::kNone; }
  bool reads_are_on() const { return is_free_of_disk() && Clock::now() >= reads_off_until; }
  const Slot* slot_of(const PageKey& key) const;
  // The log gets one line of a store's life about a disk that fails.
  void warn(const Error& error);

 private:
  // False where there is nothing to do now.
  bool work(PageFolder& folder, Lock& lock);
  void read(PageFolder& folder, Lock& lock);
  void write(PageFolder& folder, Slot& slot, Lock& lock);
  void remove(PageFolder& folder, Lock& lock);
  void look(PageFolder& folder, Lock& lock);
  Slot* next_slot();
};

}  // namespace lockstep
