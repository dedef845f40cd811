#include "cluster/desired_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/unique_fd.h"
#include "cluster/desired_json.h"
#include "cluster/fingerprint.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileName = "desired.json";
constexpr std::string_view kPreviousName = "desired.json.previous";
constexpr std::string_view kNewName = "desired.json.new";
constexpr std::string_view kMagic = "lockstep desired state 1 ";
constexpr uintmax_t kFileBytesMax = 64 << 20;

Error disk_error(const fs::path& path, std::string_view what) {
  return {ErrorCode::kInternal,
          fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno))};
}

// One line with the fingerprint of what follows, then JSON.
std::string file_text(const DesiredState& state) {
  const std::string body = dump_json(desired_json(state));
  return fmt::format("{}{}\n{}\n", kMagic, fingerprint(body), body);
}

Result<DesiredState> parse_file(std::string_view text) {
  const size_t line = text.find('\n');
  if (!text.starts_with(kMagic) || line == std::string_view::npos || text.back() != '\n') {
    return Error{ErrorCode::kCorrupt, "it is cut off or no desired state of this version"};
  }
  const std::string_view sum = text.substr(kMagic.size(), line - kMagic.size());
  const std::string_view body = text.substr(line + 1, text.size() - line - 2);
  if (sum != std::to_string(fingerprint(body))) {
    return Error{ErrorCode::kCorrupt, "its checksum is wrong"};
  }
  return desired_of(TRY(parse_json(body)));
}

Result<DesiredState> read_state(const fs::path& path) {
  std::error_code error;
  if (fs::file_size(path, error) > kFileBytesMax || error) {
    return Error{ErrorCode::kCorrupt, "it is no file of a sensible size"};
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Error{ErrorCode::kCorrupt, "it cannot be read"};
  return parse_file(text.str());
}

// Nothing where there is no such file. A damaged one is renamed, so that it never becomes the copy
// that is kept.
std::optional<DesiredState> use_file(const fs::path& path, std::vector<std::string>& notes) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  auto state = read_state(path);
  if (state.ok()) return std::move(state.value());
  const fs::path aside = path.string() + ".damaged";
  fs::rename(path, aside, error);
  notes.push_back(fmt::format("{} cannot be used: {}; it is kept as {}", path.string(),
                              state.error().message, aside.filename().string()));
  return std::nullopt;
}

Status flush(const fs::path& path, int flags) {
  const UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return disk_error(path, "flush");
  return Ok{};
}

Status write_flushed(const fs::path& path, std::string_view text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
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
  auto state = use_file(folder / kFileName, opened.notes);
  if (!state) {
    state = use_file(folder / kPreviousName, opened.notes);
    if (state && !opened.notes.empty()) opened.notes.push_back("the state before it is used");
  }
  if (state) opened.state = std::move(*state);
  return opened;
}

Status DesiredStore::save(const DesiredState& state) {
  const fs::path current = folder_ / kFileName;
  TRY(write_flushed(folder_ / kNewName, file_text(state)));
  std::error_code error;
  // A power cut between the two leaves the previous one, which open() takes.
  if (fs::exists(current, error)) TRY(rename_file(current, folder_ / kPreviousName));
  TRY(rename_file(folder_ / kNewName, current));
  return flush(folder_, O_RDONLY | O_DIRECTORY);
}

}  // namespace lockstep
