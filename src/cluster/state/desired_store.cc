#include "cluster/state/desired_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "base/files/mapped_file.h"
#include "base/files/unique_fd.h"
#include "cluster/fingerprint.h"
#include "cluster/state/desired_json.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileName = "desired.json";
constexpr std::string_view kPreviousName = "desired.json.previous";
constexpr std::string_view kNewName = "desired.json.new";
constexpr std::string_view kStateMagic = "lockstep desired state 1 ";
constexpr size_t kFileBytesMax = 64 << 20;
constexpr int kDamagedMax = 100;  // kept per name

Error disk_error(const fs::path& path, std::string_view what) {
  return {ErrorCode::kInternal,
          fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno))};
}

// One line with the fingerprint of the rest, then JSON.
std::string file_text(const DesiredState& state) {
  const std::string body = dump_json(desired_json(state));
  return fmt::format("{}{}\n{}\n", kStateMagic, fingerprint(body), body);
}

Result<DesiredState> parse_file(std::string_view text) {
  const size_t line = text.find('\n');
  if (!text.starts_with(kStateMagic) || line == std::string_view::npos || text.back() != '\n') {
    return Error{ErrorCode::kCorrupt, "it is truncated or not a desired state of this version"};
  }
  const std::string_view sum = text.substr(kStateMagic.size(), line - kStateMagic.size());
  const std::string_view body = text.substr(line + 1, text.size() - line - 2);
  if (sum != std::to_string(fingerprint(body))) {
    return Error{ErrorCode::kCorrupt, "its checksum is wrong"};
  }
  return desired_of(TRY(parse_json(body)));
}

Result<DesiredState> read_state(const fs::path& path) {
  const auto text = read_small_file(path, kFileBytesMax);
  if (text.ok()) return parse_file(text.value());
  // The disk may recover from a failed read: that is no damage.
  const bool is_damage = text.error().code != ErrorCode::kInternal;
  return is_damage ? Error{ErrorCode::kCorrupt, text.error().message} : text.error();
}

// "desired.json.damaged", then "desired.json.damaged.2" and on: each may be the only good copy of
// something, so none replaces another.
Result<fs::path> set_aside(const fs::path& path) {
  for (int number = 1; number <= kDamagedMax; ++number) {
    const std::string ending = number == 1 ? "" : fmt::format(".{}", number);
    const fs::path aside = path.string() + ".damaged" + ending;
    struct stat facts {};
    if (::lstat(aside.c_str(), &facts) == 0) continue;
    if (errno != ENOENT || ::rename(path.c_str(), aside.c_str()) != 0) {
      return disk_error(path, "set aside the damaged");
    }
    return aside;
  }
  return Error{ErrorCode::kExhausted,
               fmt::format("{} is damaged, and so are {} earlier ones next to it: look at them and "
                           "delete those that are not needed",
                           path.string(), kDamagedMax)};
}

// Nullopt if there is no such file. A damaged one is renamed, so that it never becomes the kept
// copy; failing to read or to set aside is an error.
Result<std::optional<DesiredState>> use_file(const fs::path& path,
                                             std::vector<std::string>& notes) {
  auto state = read_state(path);
  if (state.ok()) return std::optional(std::move(state.value()));
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 && errno == ENOENT) return std::optional<DesiredState>();
  if (state.error().code != ErrorCode::kCorrupt) return state.error();
  const fs::path aside = TRY(set_aside(path));
  notes.push_back(fmt::format("{} cannot be used: {}; it is kept as {}", path.string(),
                              state.error().message, aside.filename().string()));
  return std::optional<DesiredState>();
}

Status flush_folder(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return disk_error(path, "flush");
  return Ok{};
}

Status write_flushed(const fs::path& path, std::string_view text) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const UniqueFd fd(::open(path.c_str(), flags, 0600));
  if (!fd.is_open()) return disk_error(path, "write");
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return disk_error(path, "write");
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(fd.get()) != 0) return disk_error(path, "flush");
  return Ok{};
}

Status rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return disk_error(to, "replace");
  return Ok{};
}

}  // namespace

Result<DesiredStore::Opened> DesiredStore::open(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return Error{ErrorCode::kInternal,
                 fmt::format("cannot create {}: {}", folder.string(), error.message())};
  }
  Opened opened{DesiredStore(folder), {}, {}};
  auto state = TRY(use_file(folder / kFileName, opened.notes));
  if (!state) {
    state = TRY(use_file(folder / kPreviousName, opened.notes));
    if (state && !opened.notes.empty()) opened.notes.push_back("the previous state is used");
  }
  if (!state && !opened.notes.empty()) {
    opened.notes.push_back(
        "this node starts without models until another node reports them; load them again if there "
        "is no other node");
  }
  if (state) opened.state = std::move(*state);
  return opened;
}

Status DesiredStore::save(const DesiredState& state) {
  const fs::path current = folder_ / kFileName;
  TRY(write_flushed(folder_ / kNewName, file_text(state)));
  std::error_code error;
  // A power cut between the two renames leaves the previous file, which open() uses.
  if (fs::exists(current, error)) TRY(rename_file(current, folder_ / kPreviousName));
  TRY(rename_file(folder_ / kNewName, current));
  return flush_folder(folder_);
}

}  // namespace lockstep
