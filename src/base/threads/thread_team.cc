#include "base/threads/thread_team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/machine/machine.h"
#include "base/threads/wait.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread spins for the next section, or the owner for the end of one, before it sleeps.
// The gap between two operations of a forward pass is a few microseconds; waking a sleeping thread
// costs some tens.
constexpr std::chrono::microseconds kSpin{60};
// Checks of the flag between two readings of the clock.
constexpr int kLooksPerClock = 32;
// A thread's even share of what is left is this many shrinking chunks.
constexpr int kChunksOfShare = 4;

// Waits by spinning, then asleep. A waiter counts itself and then checks its condition once more;
// the other side changes the condition and then checks the count. Both are sequentially consistent,
// so at least one of them sees the other and no wake-up is lost.
class Gate {
 public:
  // `ready` must read its flag with memory_order_seq_cst. There is no deadline: it waits for work
  // in this very process to end, or idles until there is work.
  template <class Ready>
  void wait(bool may_spin, Ready ready) {
    if (may_spin ? spin(ready) : ready()) return;
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    condition_.wait(lock, ready);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  // Called after the flag was changed with memory_order_seq_cst.
  void wake() {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    { std::lock_guard lock(mutex_); }  // a waiter is now either asleep or will see the flag
    condition_.notify_all();
  }

 private:
  template <class Ready>
  static bool spin(Ready ready) {
    const Clock::time_point end = Clock::now() + kSpin;
    do {
      for (int i = 0; i < kLooksPerClock; ++i) {
        if (ready()) return true;
        relax_processor();
      }
    } while (Clock::now() < end);
    return false;
  }

  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable condition_;
};

// The state of the current section in one word, so that entering and closing it exclude each other:
// its number, whether threads may still enter, and how many are inside (without the owner).
class SectionWord {
 public:
  // Owner, while nobody is inside. Sequentially consistent, for Gate. An exchange and not a store:
  // on x86-64 both are one instruction, and qemu (7.2) lets an AArch64 store pass a later load.
  void open(uint64_t number) {
    word_.exchange(number * kNumber + kOpen, std::memory_order_seq_cst);
  }
  void close() { word_.fetch_and(~kOpen, std::memory_order_acq_rel); }
  bool is_left() const { return word_.load(std::memory_order_seq_cst) % kOpen == 0; }

  uint64_t number() const { return word_.load(std::memory_order_seq_cst) / kNumber; }
  // False if the section is closed. `number` becomes the section's. Acquire: the owner has written
  // the work before it opened the section.
  bool enter(uint64_t& number) {
    uint64_t word = word_.load(std::memory_order_acquire);
    bool has_entered = false;
    while ((word & kOpen) != 0 && !has_entered) {
      has_entered = word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire);
    }
    number = word / kNumber;
    return has_entered;
  }
  // True for the last one. Its results are visible to an owner that sees the section left.
  bool leave() { return word_.fetch_sub(1, std::memory_order_seq_cst) % kOpen == 1; }

 private:
  static constexpr uint64_t kOpen = uint64_t{1} << 16;
  static constexpr uint64_t kNumber = 2 * kOpen;

  std::atomic<uint64_t> word_{0};
};

}  // namespace

struct ThreadTeam::Impl {
  explicit Impl(const Options& chosen) : options(chosen) {}

  Options options;
  // With fewer processors than threads a spinning thread would block the one it waits for.
  bool may_spin = true;
  uint64_t sections = 0;

  // Written by the owner before it opens a section and read by threads that have entered it.
  RawBody body = nullptr;
  void* context = nullptr;
  int count = 0;
  int grain = 1;
  Chunks chunks = Chunks::kEqual;
  bool is_over = false;

  alignas(64) SectionWord section;
  alignas(64) std::atomic<int64_t> next{0};  // beginning of the next chunk
  Gate work;
  Gate finish;
  std::vector<std::thread> threads;

  int64_t chunk_at(int64_t first) const;
  void open_section();
  void work_until_over(int thread);
  void pin(int thread) const;
};

void ThreadTeam::Impl::pin(int thread) const {
  if (options.first_core < 0) return;
  pin_this_thread((options.first_core + thread) % machine_core_count());
}

void ThreadTeam::Impl::open_section() {
  section.open(++sections);
  work.wake();
}

void ThreadTeam::Impl::work_until_over(int thread) {
  pin(thread);
  for (uint64_t seen = 0;;) {
    work.wait(may_spin, [&] { return section.number() != seen; });
    if (!section.enter(seen)) continue;
    if (is_over) return;
    body(context, thread);
    if (section.leave()) finish.wake();
  }
}

ThreadTeam::ThreadTeam(const Options& options) : impl_(std::make_unique<Impl>(options)) {
  LOCKSTEP_CHECK(options.threads >= 1);
  impl_->may_spin = options.threads <= available_core_count();
  impl_->threads.reserve(static_cast<size_t>(options.threads - 1));
  for (int thread = 1; thread < options.threads; ++thread) {
    impl_->threads.emplace_back([impl = impl_.get(), thread] { impl->work_until_over(thread); });
  }
  impl_->pin(0);
}

// The last section is never closed, so every thread enters it.
ThreadTeam::~ThreadTeam() {
  impl_->is_over = true;
  impl_->open_section();
  for (std::thread& thread : impl_->threads) thread.join();
}

int ThreadTeam::size() const {
  return impl_->options.threads;
}

uint64_t ThreadTeam::section_count() const {
  return impl_->sections;
}

void ThreadTeam::run_section(RawBody body, void* context) {
  Impl& team = *impl_;
  if (team.threads.empty() || team.count <= team.grain) return body(context, 0);
  team.body = body;
  team.context = context;
  team.open_section();
  body(context, 0);
  team.section.close();
  team.finish.wait(team.may_spin, [&] { return team.section.is_left(); });
}

void ThreadTeam::start_chunks(int count, int grain, Chunks chunks) {
  LOCKSTEP_CHECK(grain > 0);
  impl_->count = count;
  impl_->grain = grain;
  impl_->chunks = chunks;
  impl_->next.store(0, std::memory_order_relaxed);
}

// The size of the chunk that begins at `first`.
int64_t ThreadTeam::Impl::chunk_at(int64_t first) const {
  if (chunks == Chunks::kEqual) return grain;
  return std::max<int64_t>(grain, (count - first) / (kChunksOfShare * options.threads));
}

bool ThreadTeam::next_chunk(int* begin, int* end) {
  Impl& team = *impl_;
  int64_t first = team.next.load(std::memory_order_relaxed);
  int64_t after = 0;
  do {
    if (first >= team.count) return false;
    after = std::min<int64_t>(first + team.chunk_at(first), team.count);
  } while (!team.next.compare_exchange_weak(first, after, std::memory_order_relaxed));
  *begin = static_cast<int>(first);
  *end = static_cast<int>(after);
  if (team.options.progress != nullptr) team.options.progress->tick();
  return true;
}

}  // namespace lockstep
