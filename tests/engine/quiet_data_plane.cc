// Shows that after load and a warm-up the data plane allocates nothing, takes no mutex and writes
// nothing: ranks run as threads, and this program interposes malloc and its kin, pthread_mutex_lock
// and write. It is a separate program, since this replaces them everywhere.
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "kernels/isa.h"
#include "support/event_reader.h"
#include "transport/form/local_links.h"

namespace {

// While set, every call in any thread except the first one counts.
std::atomic<bool> is_counting{false};
thread_local bool is_exempt = false;
std::atomic<int> allocations{0};
std::atomic<int> locks{0};
std::atomic<int> team_locks{0};
std::atomic<int> writes{0};

// The callers of the counted calls, each once, to locate them.
struct Place {
  static constexpr int kFramesMax = 9;
  void* frames[kFramesMax] = {};
  int count = 0;
};
constexpr int kPlacesMax = 8;
Place places[kPlacesMax];
int place_count = 0;
std::atomic_flag places_are_used = ATOMIC_FLAG_INIT;

// Not called when memory is freed: its allocation was recorded already.
void keep_place() {
  Place place;
  place.count = ::backtrace(place.frames, Place::kFramesMax);
  while (places_are_used.test_and_set()) {
  }
  bool is_known = place_count == kPlacesMax;
  for (int i = 0; i < place_count && !is_known; ++i) {
    is_known = std::memcmp(places[i].frames, place.frames, sizeof(place.frames)) == 0;
  }
  if (!is_known) places[place_count++] = place;
  places_are_used.clear();
}

int (*real_lock)(pthread_mutex_t*) = nullptr;

void count(std::atomic<int>& kind, bool keeps_place) {
  if (!is_counting.load(std::memory_order_relaxed) || is_exempt) return;
  kind.fetch_add(1, std::memory_order_relaxed);
  if (!keeps_place) return;
  is_exempt = true;
  keep_place();
  is_exempt = false;
}

// Threads of a team that wait for work, or for its end, longer than they spin sleep on a condition
// variable: the only mutex that is permitted (base/threads/thread_team.cc, Gate).
void count_lock(void* caller) {
  if (!is_counting.load(std::memory_order_relaxed) || is_exempt) return;
  is_exempt = true;
  Dl_info facts{};
  const bool is_known = ::dladdr(caller, &facts) != 0 && facts.dli_sname != nullptr;
  const bool is_team = is_known && std::strstr(facts.dli_sname, "10ThreadTeam") != nullptr;
  is_exempt = false;
  count(is_team ? team_locks : locks, !is_team);
}

}  // namespace

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LOCKSTEP_CAN_COUNT 1

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t size) {
  count(allocations, true);
  return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  count(allocations, true);
  return __libc_calloc(number, size);
}
void* realloc(void* old, size_t size) {
  count(allocations, true);
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  count(allocations, true);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
void free(void* memory) {
  if (memory) count(allocations, false);
  __libc_free(memory);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  count_lock(__builtin_return_address(0));
  if (!real_lock) {
    real_lock =
        reinterpret_cast<int (*)(pthread_mutex_t*)>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  }
  return real_lock(mutex);
}
ssize_t write(int fd, const void* bytes, size_t size) {
  count(writes, false);
  return ::syscall(SYS_write, fd, bytes, size);
}
}
#else
#define LOCKSTEP_CAN_COUNT 0
#endif

namespace lockstep {
namespace {

constexpr int kWarmUp = 40;  // tokens of the first sequence, then all buffers have their size
constexpr int kCounted = 60;
constexpr int kTokens = kWarmUp + kCounted + 40;
constexpr int kGuesses = 3;
constexpr uint64_t kFirst = 1, kSecond = 2;

struct Case {
  const char* name;
  LinkKind link;
  int ranks;
  int threads;
  bool has_prompt;  // another sequence's prompt is fed in each step
  SamplingOptions sampling;
  Overlap overlap = Overlap::kAuto;
  std::string cache_folder{};  // where pages of state would be saved, given time
  bool has_draft_layer = false;
  const char* golden = "mtp-glm4moe-bf16";  // the case with a draft layer
  int stages = 1;
};

// Turns the counting on and off at given tokens of the first sequence, in the leader's step.
class Events final : public EventReader {
 public:
  Events(Engine& engine, const Case& of) : engine_(engine), case_(of) {}

  void on_token(uint64_t request, int32_t) override {
    if (request != kFirst) return;
    ++tokens_;
    if (tokens_ == kWarmUp) is_counting = true;
    if (tokens_ == kWarmUp + kCounted) is_counting = false;
  }
  void on_end(uint64_t, FinishReason) override {
    if (++ended_ == (case_.has_prompt ? 2 : 1)) engine_.stop();
  }
  void on_error(uint64_t, const Error& error) override {
    std::printf("%s\n", error.message.c_str());
    std::exit(1);
  }

 private:
  Engine& engine_;
  const Case& case_;
  int tokens_ = 0;
  int ended_ = 0;
};

GenerateRequest request_of(const Case& of, bool is_second) {
  GenerateRequest request;
  request.prompt.assign(is_second ? 4 * (kWarmUp + kCounted) : 4, 7);
  request.chunk = 3;
  request.max_tokens = is_second ? 1 : kTokens;
  request.sampling = of.sampling;
  if (of.has_draft_layer) request.draft_tokens = kGuesses;
  return request;
}

EngineOptions options_of(const Case& of) {
  EngineOptions options;
  const std::string sources = LOCKSTEP_SOURCE_DIR;
  options.spec = {.model = sources + "/models/stories260K",
                  .shares = equal_shares(of.ranks),
                  .link = {.kind = of.link, .stages = of.stages},
                  .threads = of.threads,
                  .context = 512,
                  .sequences_max = 2,
                  .batch_tokens_max = 16};
  options.overlap = of.overlap;
  if (of.has_draft_layer) {
    options.spec.model = sources + "/tests/data/golden/" + of.golden;
    options.spec.draft_layer = true;
    options.layer_guesses = kGuesses;
  }
  if (!of.cache_folder.empty()) {
    options.cache_folder = of.cache_folder;
    options.cache_disk_bytes = uint64_t{1} << 26;
  }
  options.kernels = available_kernels().back();
  return options;
}

void run_rank(const Case& of, int rank, std::vector<std::unique_ptr<Link>> links) {
  const EngineOptions options = options_of(of);
  Group group({.rank = rank,
               .links = std::move(links),
               .timeout = std::chrono::seconds(30),
               .kernels = options.kernels});
  auto engine = load_engine(options, std::move(group));
  if (!engine.ok()) std::exit(1);
  Events events(*engine.value(), of);
  if (rank == 0) {
    engine.value()->submit(kFirst, request_of(of, false));
    if (of.has_prompt) engine.value()->submit(kSecond, request_of(of, true));
  }
  if (!engine.value()->run(events).ok()) std::exit(1);
  const bool has_guessed = engine.value()->draft_counts().guesses > 0;
  if (rank == 0 && has_guessed != of.has_draft_layer) std::exit(1);
}

// True if nothing was counted.
bool run_case(const Case& of) {
  auto links = open_local_links(of.link, of.ranks);
  if (!links.ok()) return false;
  allocations = locks = team_locks = writes = place_count = 0;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < of.ranks; ++rank) {
    ranks.emplace_back(
        [&, rank] { run_rank(of, rank, std::move(links.value()[static_cast<size_t>(rank)])); });
  }
  for (std::thread& rank : ranks) rank.join();
  const bool is_fine = allocations == 0 && locks == 0 && writes == 0;
  std::printf("%-26s %s, %d ranks, %d threads: %d allocations, %d locks, %d writes for %d tokens",
              of.name, of.link == LinkKind::kShm ? "shm" : "tcp", of.ranks, of.threads,
              allocations.load(), locks.load(), writes.load(), kCounted);
  if (of.threads > 1) std::printf("; %d by threads that fall asleep", team_locks.load());
  std::printf("\n");
  std::fflush(stdout);
  for (int i = 0; i < place_count; ++i) {
    ::backtrace_symbols_fd(places[i].frames, places[i].count, STDOUT_FILENO);
    if (::write(STDOUT_FILENO, "\n", 1) != 1) return false;
  }
  return is_fine;
}

// Shows that the counting works; without it the test would prove nothing.
bool counts_at_all() {
  allocations = locks = 0;
  std::thread([] {
    is_counting = true;
    auto memory = std::make_unique<std::vector<int>>(100);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    is_counting = false;
    pthread_mutex_unlock(&mutex);
  }).join();
  return allocations == 2 && locks == 1;
}

int check_all() {
  if (!LOCKSTEP_CAN_COUNT) {
    std::printf("skipped: this program's own malloc cannot work with a sanitizer's\n");
    return 0;
  }
  is_exempt = true;
  keep_place();  // triggers lazy loading
  if (!counts_at_all()) {
    std::printf("allocations and locks are not counted: %d and %d\n", allocations.load(),
                locks.load());
    return 1;
  }
  const SamplingOptions greedy{}, noise{.temperature = 1, .seed = 3};
  const SamplingOptions nucleus{.temperature = 1, .top_k = 20, .top_p = 0.9f, .seed = 3};
  bool is_fine = true;
  std::string folder = (std::filesystem::temp_directory_path() / "quiet_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  for (const LinkKind link : {LinkKind::kShm, LinkKind::kTcp}) {
    for (const int ranks : {1, 2, 3}) {
      is_fine &= run_case({"decode", link, ranks, 1, false, greedy});
      is_fine &= run_case({"decode, sampled", link, ranks, 1, false, noise});
      is_fine &= run_case({"decode, of the likeliest", link, ranks, 1, false, nucleus});
      is_fine &= run_case({"decode and a prompt", link, ranks, 1, true, noise});
      is_fine &= run_case({"decode and a prompt", link, ranks, 2, true, greedy});
      is_fine &= run_case({"a prompt in halves", link, ranks, 2, true, greedy, Overlap::kAlways});
      is_fine &= run_case({"decode, with a disk", link, ranks, 1, false, noise, {}, folder});
      for (const SamplingOptions& sampling : {greedy, noise}) {
        is_fine &= run_case({.name = "decode, with a draft layer",
                             .link = link,
                             .ranks = ranks,
                             .threads = 1,
                             .has_prompt = true,
                             .sampling = sampling,
                             .has_draft_layer = true});
      }
      for (const bool has_draft_layer : {false, true}) {
        if (ranks == 1) continue;
        is_fine &= run_case({.name = has_draft_layer ? "stages, with a draft layer" : "stages",
                             .link = link,
                             .ranks = ranks,
                             .threads = 1,
                             .has_prompt = false,
                             .sampling = noise,
                             .has_draft_layer = has_draft_layer,
                             .stages = ranks});
      }
      for (const auto& [name, golden] : {std::pair{"compressed attention", "deepseekv4-bf16"},
                                         std::pair{"n-grams and chosen blocks", "qwen4exp-bf16"}}) {
        is_fine &= run_case({.name = name,
                             .link = link,
                             .ranks = ranks,
                             .threads = 1,
                             .has_prompt = true,
                             .sampling = greedy,
                             .has_draft_layer = true,
                             .golden = golden});
      }
    }
  }
  std::filesystem::remove_all(folder);
  return is_fine ? 0 : 1;
}

}  // namespace
}  // namespace lockstep

int main() {
  return lockstep::check_all();
}
