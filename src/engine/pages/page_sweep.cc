#include "engine/pages/page_sweep.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/files/file_time.h"
#include "base/files/unique_fd.h"
#include "base/hex.h"
#include "engine/pages/page_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Use {
  int64_t used_ns = 0;
  uint64_t bytes = 0;
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
        if (!parse_page_file_name(name) || ::lstat(path.c_str(), &facts) != 0) return;
        if (!S_ISREG(facts.st_mode)) return;
        take(path, Use{.used_ns = changed_ns(facts),
                       .bytes = disk_bytes(static_cast<uint64_t>(facts.st_size))});
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

}  // namespace

PageSweep sweep_pages(const fs::path& folder, uint64_t bytes_max, uint64_t bytes_after) {
  PageSweep sweep;
  std::vector<Use> uses;
  for_each_page(folder, [&](const fs::path&, const Use& use) {
    sweep.bytes += use.bytes;
    if (uses.size() < kSweptFilesMax) uses.push_back(use);
  });
  if (sweep.bytes <= bytes_max) return sweep;
  std::sort(uses.begin(), uses.end(),
            [](const Use& a, const Use& b) { return a.used_ns < b.used_ns; });
  uint64_t left = sweep.bytes;
  int64_t newest_ns = 0;  // among the removed
  for (size_t i = 0; i < uses.size() && left > bytes_after; ++i) {
    left -= uses[i].bytes;
    newest_ns = uses[i].used_ns;
  }
  for_each_page(folder, [&](const fs::path& path, const Use& use) {
    if (use.used_ns > newest_ns || ::unlink(path.c_str()) != 0) return;
    sweep.bytes -= std::min(sweep.bytes, use.bytes);
    ++sweep.removed;
  });
  remove_empty_folders(folder);
  return sweep;
}

void remove_if_left_over(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.is_open() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

}  // namespace lockstep
