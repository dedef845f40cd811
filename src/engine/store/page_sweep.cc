#include "engine/store/page_sweep.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "base/files/file_time.h"
#include "base/files/unique_fd.h"
#include "base/hex.h"
#include "engine/store/page_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Use {
  int64_t used_ns = 0;
  uint64_t bytes = 0;
  PageFileKind kind = PageFileKind::kPage;
};

// Calls `take` with every entry of a folder; unreadable ones are skipped.
template <class Take>
void for_each_entry(const fs::path& folder, Take&& take) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    take(entry->path());
  }
}

template <class Take>
void for_each_page(const fs::path& folder, Take&& take) {
  for_each_entry(folder, [&](const fs::path& model) {
    if (!is_hex(model.filename().string(), 2 * sizeof(Digest))) return;
    for_each_entry(model, [&](const fs::path& bucket) {
      if (!is_hex(bucket.filename().string(), 2)) return;
      for_each_entry(bucket, [&](const fs::path& path) {
        const std::string name = path.filename().string();
        if (name.starts_with(kUnfinishedPage)) return remove_if_left_over(path);
        struct stat facts {};
        const auto page = parse_page_file_name(name);
        if (!page || ::lstat(path.c_str(), &facts) != 0) return;
        if (!S_ISREG(facts.st_mode)) return;
        take(path, Use{.used_ns = changed_ns(facts),
                       .bytes = disk_bytes(static_cast<uint64_t>(facts.st_size)),
                       .kind = page->kind});
      });
    });
  });
}

// Removes the empty folders of models that are no longer used.
void remove_empty_folders(const fs::path& folder) {
  for_each_entry(folder, [](const fs::path& model) {
    if (!is_hex(model.filename().string(), 2 * sizeof(Digest))) return;
    for_each_entry(model, [](const fs::path& bucket) { ::rmdir(bucket.c_str()); });
    ::rmdir(model.c_str());
  });
}

// The least recently used first.
class OldestUses {
 public:
  void add(const Use& use) {
    uses_.push_back(use);
    bytes_ += use.bytes;
  }
  void sort() {
    std::sort(uses_.begin(), uses_.end(),
              [](const Use& a, const Use& b) { return a.used_ns < b.used_ns; });
  }
  size_t size() const { return uses_.size(); }
  bool is_empty() const { return next_ == uses_.size(); }
  uint64_t bytes() const { return bytes_; }  // of those not taken
  int64_t oldest_ns() const { return uses_[next_].used_ns; }
  uint64_t take() {
    const Use& use = uses_[next_++];
    newest_taken_ns_ = use.used_ns;
    bytes_ -= use.bytes;
    return use.bytes;
  }
  bool is_taken(const Use& use) const { return next_ > 0 && use.used_ns <= newest_taken_ns_; }

 private:
  std::vector<Use> uses_;
  uint64_t bytes_ = 0;
  size_t next_ = 0;
  int64_t newest_taken_ns_ = 0;
};

void choose_removed(uint64_t bytes, uint64_t bytes_after, OldestUses& pages, OldestUses& states) {
  pages.sort();
  states.sort();
  while (bytes > bytes_after && !(pages.is_empty() && states.is_empty())) {
    const bool are_too_many = states.bytes() > states_bytes_max(bytes_after);
    const bool takes_state = !states.is_empty() && (are_too_many || pages.is_empty() ||
                                                    states.oldest_ns() < pages.oldest_ns());
    bytes -= std::min(bytes, (takes_state ? states : pages).take());
  }
}

}  // namespace

PageSweep sweep_pages(const fs::path& folder, uint64_t bytes_max, uint64_t bytes_after) {
  PageSweep sweep;
  OldestUses pages, states;
  const auto of_kind = [&](const Use& use) -> OldestUses& {
    return use.kind == PageFileKind::kState ? states : pages;
  };
  for_each_page(folder, [&](const fs::path&, const Use& use) {
    sweep.bytes += use.bytes;
    if (pages.size() + states.size() < kSweptFilesMax) of_kind(use).add(use);
  });
  if (sweep.bytes <= bytes_max) return sweep;
  choose_removed(sweep.bytes, bytes_after, pages, states);
  for_each_page(folder, [&](const fs::path& path, const Use& use) {
    if (!of_kind(use).is_taken(use) || ::unlink(path.c_str()) != 0) return;
    sweep.bytes -= std::min(sweep.bytes, use.bytes);
    ++sweep.removed;
  });
  remove_empty_folders(folder);
  return sweep;
}

void remove_if_left_over(const fs::path& path) {
  struct stat facts {};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (::lstat(path.c_str(), &facts) != 0) return;
  const auto age = std::chrono::nanoseconds(nanoseconds(now) - changed_ns(facts));
  if (age < kLeftOverAgeMin) return;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.is_open() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

}  // namespace lockstep
