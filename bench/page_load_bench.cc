// How long a step waits for a page of state from the disk: PageStore::load() into memory and the
// copy into the state, for parts of several sizes. The files are in the system's cache if it has
// room, as they are soon after they were written; "uncached" asks the system to drop them first.
// usage: page_load_bench FOLDER [--pages N]. Prints a table. The folder is created, and left to the
// caller with all its contents.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "engine/store/page_store.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

PageKey key_of(size_t part_bytes, int page) {
  PageKey key{};
  std::memcpy(key.data(), &part_bytes, sizeof(part_bytes));
  std::memcpy(key.data() + sizeof(part_bytes), &page, sizeof(page));
  return key;
}

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Asks the system to write the files out and drop them from its cache, if it supports that.
void forget_files(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY);
    if (fd < 0) continue;
    ::fsync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

struct Times {
  std::vector<double> ms;
  double median() {
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
  }
  double worst() const { return ms.back(); }  // after median()
};

Times load_all(PageStore& store, size_t part_bytes, int pages, std::vector<std::byte>& state) {
  std::vector<std::byte> page(store.page_bytes());
  Times times;
  for (int i = 0; i < pages; ++i) {
    const auto begin = Clock::now();
    LOCKSTEP_CHECK(store.load(key_of(part_bytes, i), page, seconds(10)).ok());
    std::copy(page.begin(), page.end(), state.begin());
    times.ms.push_back(ms_since(begin));
  }
  return times;
}

void measure(const std::filesystem::path& folder, size_t mib, int pages) {
  // As for a model with 32 layers.
  const size_t part_bytes = mib << 20;
  const PageShape shape{.layer_end = 32, .head_end = 1, .block_bytes = part_bytes / 32};
  auto store = PageStore::open({.folder = folder, .bytes_max = uint64_t{8} << 30, .shape = shape});
  if (!store.ok()) {
    fmt::print(stderr, "{}\n", store.error().message);
    std::exit(1);
  }
  Times saves;  // the engine thread's part of it
  for (int i = 0; i < pages; ++i) {
    LOCKSTEP_CHECK(store.value()->flush(seconds(60)).ok());
    const auto begin = Clock::now();
    const auto bytes = store.value()->begin_save();
    LOCKSTEP_CHECK(bytes.has_value());
    std::fill(bytes->begin(), bytes->end(), static_cast<std::byte>(i));
    store.value()->save(key_of(part_bytes, i));
    saves.ms.push_back(ms_since(begin));
  }
  LOCKSTEP_CHECK(store.value()->flush(seconds(60)).ok());
  std::vector<std::byte> state(part_bytes);
  Times cached = load_all(*store.value(), part_bytes, pages, state);
  forget_files(folder);
  Times uncached = load_all(*store.value(), part_bytes, pages, state);
  const double save = saves.median(), warm = cached.median(), cold = uncached.median();
  fmt::print(
      "{:>4} MiB  {:8.2f} {:8.2f}  {:8.2f} {:8.2f} {:6.2f} GB/s  {:8.2f} {:8.2f} {:6.2f} GB/s\n",
      mib, save, saves.worst(), warm, cached.worst(), static_cast<double>(part_bytes) / warm / 1e6,
      cold, uncached.worst(), static_cast<double>(part_bytes) / cold / 1e6);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: page_load_bench FOLDER [--pages N]\n");
    return 1;
  }
  const bool has_pages = argc == 4 && std::string_view(argv[2]) == "--pages";
  const int pages = has_pages ? std::max(1, std::atoi(argv[3])) : 16;
  fmt::print("median and longest ms of a part: save (the engine's copy), load cached, uncached\n");
  for (const size_t mib : {1, 4, 16}) lockstep::measure(argv[1], mib, pages);
  return 0;
}
