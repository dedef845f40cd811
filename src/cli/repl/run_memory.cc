#include "cli/repl/run_memory.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/files/private_file.h"
#include "cluster/identity.h"

namespace lockstep {
namespace {

constexpr std::string_view kHistoryFile = "run-history";
constexpr std::string_view kConversationFile = "run-conversation.json";

}  // namespace

Result<std::filesystem::path> RunMemory::path_of(std::string_view name) {
  const std::filesystem::path folder = TRY(Identity::default_folder());
  TRY(make_private_folder(folder));
  return folder / name;
}

std::vector<std::string> RunMemory::lines() const {
  if (!is_kept_) return {};
  const auto path = path_of(kHistoryFile);
  const auto file = path.ok() ? read_private_file(path.value()) : path.error();
  return file.ok() ? parse_history(file.value()) : std::vector<std::string>();
}

Status RunMemory::add_line(const std::string& line) const {
  if (!is_kept_ || line.empty() || line.size() > kLineBytesMax) return Ok{};
  const auto path = TRY(path_of(kHistoryFile));
  // Read again: another terminal may have added lines.
  const auto file = read_private_file(path);
  if (!file.ok() && file.error().code != ErrorCode::kNotFound) return file.error();
  return replace_remembered_file(path, history_with(file.ok() ? file.value() : "", line));
}

Result<std::optional<Dialogue>> RunMemory::conversation() const {
  if (!is_kept_) return std::optional<Dialogue>();
  const auto path = TRY(path_of(kConversationFile));
  const auto file = read_private_file(path);
  if (!file.ok() && file.error().code == ErrorCode::kNotFound) return std::optional<Dialogue>();
  if (!file.ok()) return file.error();
  auto read = Dialogue::parse(file.value());
  if (read.ok()) return std::optional(std::move(read.value()));
  return Error{read.error().code, fmt::format("{}: {}", path.string(), read.error().message)};
}

Status RunMemory::keep(const Dialogue& conversation) const {
  if (!is_kept_ || conversation.is_empty()) return Ok{};
  const auto path = TRY(path_of(kConversationFile));
  const std::string saved = conversation.saved();
  if (saved.size() > kPrivateFileBytesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the conversation is longer than the {} bytes that are remembered; "
                             "/save writes it to a file",
                             kPrivateFileBytesMax)};
  }
  return replace_remembered_file(path, saved);
}

std::vector<std::string> parse_history(std::string_view file) {
  std::vector<std::string> lines;
  while (!file.empty()) {
    const size_t end = std::min(file.find('\n'), file.size());
    const auto json = parse_json(file.substr(0, end));
    file.remove_prefix(std::min(end + 1, file.size()));
    if (json.ok() && json.value().is_string())
      lines.emplace_back(text_of(json.value().get_string()));
  }
  return lines;
}

std::string history_with(std::string_view file, const std::string& line) {
  std::vector<std::string> lines = parse_history(file);
  lines.erase(std::remove(lines.begin(), lines.end(), line), lines.end());
  lines.push_back(line);
  std::vector<std::string> kept;  // the newest first
  size_t bytes = 0;
  for (auto one = lines.rbegin(); one != lines.rend() && kept.size() < RunMemory::kLinesMax;
       ++one) {
    std::string text = json_string(*one);
    bytes += text.size() + 1;
    if (bytes > RunMemory::kHistoryBytesMax) break;
    kept.push_back(std::move(text));
  }
  std::string out;
  for (auto one = kept.rbegin(); one != kept.rend(); ++one) out += *one + "\n";
  return out;
}

}  // namespace lockstep
