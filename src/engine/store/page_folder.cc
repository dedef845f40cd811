#include "engine/store/page_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/files/file_time.h"
#include "base/hex.h"
#include "engine/store/page_sweep.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Another process counts, or makes room, under the lock; if that takes longer, a page is lost.
constexpr std::chrono::milliseconds kLockWait{2000};
constexpr std::chrono::milliseconds kLockLook{2};
constexpr int kWriteTriesMax = 4;
// Clocks of file systems have ticks; the coarsest known has two seconds.
constexpr int64_t kTickNs = 2'000'000'000;

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

// Marks the file as used now, by a clock finer than file systems have. If that fails, the page is
// removed earlier.
void touch(const fs::path& path) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const timespec times[2] = {now, now};
  ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

Error folder_error(const fs::path& path, std::string_view what) {
  return {ErrorCode::kInternal,
          fmt::format("{} cannot be {}: {}", path.string(), what, std::strerror(errno))};
}

Status make_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), S_IRWXU) == 0 || errno == EEXIST) return Ok{};
  return folder_error(path, "made");
}

Status make_own_folder(const fs::path& path) {
  std::error_code ignored;  // mkdir reports a better error
  fs::create_directories(path.parent_path(), ignored);
  TRY(make_folder(path));
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return folder_error(path, "read");
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not a folder owned by this user", path.string())};
  }
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("other users may enter {}, which holds conversations: run chmod 700 on it",
                    path.string())};
  }
  return Ok{};
}

class HeldLock {
 public:
  static Result<HeldLock> take(int fd) {
    const auto deadline = std::chrono::steady_clock::now() + kLockWait;
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return Error{ErrorCode::kInternal,
                     fmt::format("the cache's lock cannot be taken: {}", std::strerror(errno))};
      }
      if (std::chrono::steady_clock::now() > deadline) {
        return Error{ErrorCode::kTimeout, "another process does not release the cache's lock"};
      }
      std::this_thread::sleep_for(kLockLook);
    }
    return HeldLock(fd);
  }
  HeldLock(HeldLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HeldLock& operator=(HeldLock&&) = delete;
  ~HeldLock() {
    if (fd_ >= 0) ::flock(fd_, LOCK_UN);
  }

 private:
  explicit HeldLock(int fd) : fd_(fd) {}
  int fd_;
};

// The size of the folder, as the processes count it together. Written twice, so that a torn or
// foreign text is detected: then the folder is counted again.
struct Ledger {
  uint64_t bytes = 0;
  uint64_t again = 0;
};

std::optional<uint64_t> read_ledger(int fd) {
  Ledger ledger;
  if (::pread(fd, &ledger, sizeof(ledger), 0) != sizeof(ledger)) return {};
  if (ledger.again != ~ledger.bytes) return {};
  return ledger.bytes;
}

void write_ledger(int fd, uint64_t bytes) {
  const Ledger ledger{.bytes = bytes, .again = ~bytes};
  if (::pwrite(fd, &ledger, sizeof(ledger), 0) == sizeof(ledger)) return;
  // Makes a torn ledger invalid for the next reader.
  [[maybe_unused]] const int emptied = ::ftruncate(fd, 0);
}

}  // namespace

Result<PageFolder> PageFolder::open(PageFolderOptions options) {
  TRY(make_own_folder(options.folder));
  fs::path model = options.folder / to_hex(options.model);
  TRY(make_own_folder(model));
  const fs::path lock_path = options.folder / "lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open()) return folder_error(lock_path, "opened");
  if (::access(model.c_str(), W_OK | X_OK) != 0) return folder_error(model, "written");
  PageFolder folder(std::move(options), std::move(model), std::move(lock));
  const auto held = TRY(HeldLock::take(folder.lock_.get()));
  const uint64_t max = folder.options_.bytes_max;
  const PageSweep sweep = sweep_pages(folder.options_.folder, max, max);
  folder.bytes_ = sweep.bytes;
  write_ledger(folder.lock_.get(), sweep.bytes);
  return folder;
}

fs::path PageFolder::bucket_folder(size_t bucket) const {
  return model_ / fmt::format("{:02x}", bucket);
}

fs::path PageFolder::path_of(const PageKey& key, const PageShape& part) const {
  return bucket_folder(page_bucket(key)) / page_file_name(key, part, options_.kind);
}

std::optional<PageFiles> PageFolder::changed_files(size_t bucket) {
  Seen& seen = seen_[bucket];
  struct stat facts {};
  const bool is_there = ::stat(bucket_folder(bucket).c_str(), &facts) == 0;
  const int64_t changed_ns = is_there ? lockstep::changed_ns(facts) : -1;
  if (seen.is_settled && seen.changed_ns == changed_ns) return {};
  seen = {.changed_ns = changed_ns, .is_settled = !is_there || now_ns() - changed_ns > kTickNs};
  return list(bucket);
}

PageFiles PageFolder::list(size_t bucket) const {
  PageFiles files;
  size_t count = 0;
  std::error_code error;
  for (fs::directory_iterator entry(bucket_folder(bucket), error), end;
       !error && entry != end && count < kBucketFilesMax; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kUnfinishedPage)) remove_if_left_over(entry->path());
    auto page = parse_page_file_name(name);
    if (!page || page->kind != options_.kind || page_bucket(page->key) != bucket) continue;
    page->part.block_bytes = options_.block_bytes;
    files[page->key].push_back(page->part);
    ++count;
  }
  return files;
}

Status PageFolder::write(const PageKey& key, const PageShape& part,
                         std::span<const std::byte> blocks) {
  const fs::path path = path_of(key, part);
  if (::access(path.c_str(), F_OK) == 0) {  // by another rank or process, same bytes
    touch(path);
    bytes_ = read_ledger(lock_.get()).value_or(bytes_);
    return Ok{};
  }
  const uint64_t bytes = disk_bytes(page_file_bytes(part));
  TRY(take_room(bytes));
  Status status = write_new(key, part, blocks);
  if (!status.ok()) {
    give_back(bytes);
    return status;
  }
  touch(path);
  return Ok{};
}

Status PageFolder::write_new(const PageKey& key, const PageShape& part,
                             std::span<const std::byte> blocks) {
  const fs::path path = path_of(key, part);
  const PageFileHead head{.key = key, .model = options_.model, .part = part, .kind = options_.kind};
  Status status = write_page_file(path, head, blocks);
  // Others may remove empty folders at any time.
  for (int tries = 1; tries < kWriteTriesMax; ++tries) {
    if (status.ok() || status.error().code != ErrorCode::kNotFound) break;
    TRY(make_folder(model_));
    TRY(make_folder(path.parent_path()));
    status = write_page_file(path, head, blocks);
  }
  return status;
}

Status PageFolder::read(const PageKey& key, const PageShape& part, PagePart& page) {
  const fs::path path = path_of(key, part);
  const PageFileHead head{.key = key, .model = options_.model, .part = part, .kind = options_.kind};
  Status status = read_page_file(path, head, page);
  if (!status.ok()) {
    if (status.error().code == ErrorCode::kCorrupt) remove_file(path);
    return status;
  }
  touch(path);
  return status;
}

void PageFolder::remove(const PageKey& key) {
  const size_t bucket = page_bucket(key);
  const PageFiles files = list(bucket);
  const auto page = files.find(key);
  if (page == files.end()) return;
  for (const PageShape& part : page->second) remove_file(path_of(key, part));
}

void PageFolder::remove_file(const fs::path& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || ::unlink(path.c_str()) != 0) return;
  give_back(disk_bytes(static_cast<uint64_t>(facts.st_size)));
}

uint64_t PageFolder::file_bytes_max() const {
  const bool is_state = options_.kind == PageFileKind::kState;
  return is_state ? states_bytes_max(options_.bytes_max) : options_.bytes_max;
}

Status PageFolder::take_room(uint64_t bytes) {
  const uint64_t max = options_.bytes_max;
  if (bytes > file_bytes_max()) {
    return Error{
        ErrorCode::kExhausted,
        fmt::format("a {} of {} bytes is larger than the {} that the cache may use for these on "
                    "the disk",
                    options_.kind == PageFileKind::kState ? "state" : "page", bytes,
                    file_bytes_max())};
  }
  const auto held = TRY(HeldLock::take(lock_.get()));
  const auto counted = read_ledger(lock_.get());
  bytes_ = counted.value_or(0);
  if (!counted || bytes_ > max - bytes) {
    const uint64_t after =
        std::min(max - bytes, max - max / 16);  // leaves some room for later pages
    const PageSweep sweep = sweep_pages(options_.folder, max - bytes, after);
    bytes_ = sweep.bytes;
    has_evicted_ = has_evicted_ || sweep.removed > 0;
    if (bytes_ > max - bytes) {
      return Error{ErrorCode::kExhausted, "the disk cache is full, and no room could be made"};
    }
  }
  bytes_ += bytes;
  write_ledger(lock_.get(), bytes_);
  return Ok{};
}

void PageFolder::give_back(uint64_t bytes) {
  const auto held = HeldLock::take(lock_.get());
  if (!held.ok()) return;  // the next count corrects it
  const uint64_t counted = read_ledger(lock_.get()).value_or(bytes_);
  bytes_ = counted - std::min(counted, bytes);
  write_ledger(lock_.get(), bytes_);
}

}  // namespace lockstep
