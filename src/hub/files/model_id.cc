#include "hub/files/model_id.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

constexpr size_t kNamePartBytesMax = 96;  // the hub's own limit
constexpr size_t kRevisionBytesMax = 200;
constexpr size_t kFileNameBytesMax = 1000;
constexpr size_t kFilePartBytesMax = 255;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

// "--" separates organisation and name in the cache's folders, so neither may contain it.
bool is_name_part(std::string_view part) {
  const auto is_edge = [](char c) { return c == '-' || c == '.'; };
  return !part.empty() && part.size() <= kNamePartBytesMax &&
         std::all_of(part.begin(), part.end(), is_word) && !is_edge(part.front()) &&
         !is_edge(part.back()) && part.find("--") == part.npos && part.find("..") == part.npos;
}

bool is_revision(std::string_view revision) {
  return revision.size() <= kRevisionBytesMax && is_safe_file_name(revision) &&
         std::all_of(revision.begin(), revision.end(),
                     [](char c) { return is_word(c) || c == '/'; });
}

}  // namespace

std::string ModelId::text() const {
  return repository + (file.empty() ? "" : "/" + file) + (revision.empty() ? "" : "@" + revision);
}

Result<ModelId> parse_model_id(std::string_view text) {
  ModelId id;
  const size_t at = text.find('@');
  const auto parts = parts_of(text.substr(0, at));
  if (parts.size() < 2 || !is_name_part(parts[0]) || !is_name_part(parts[1])) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("\"{:.200}\" is not a hub model; write it like org/name or org/name@revision",
                    text)};
  }
  id.repository = fmt::format("{}/{}", parts[0], parts[1]);
  if (parts.size() > 2)
    id.file = text.substr(id.repository.size() + 1, at - id.repository.size() - 1);
  if (!id.file.empty() && (!is_safe_file_name(id.file) || !id.file.ends_with(".gguf"))) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{:.200}\" is not a .gguf file of {}", id.file, id.repository)};
  }
  if (at == text.npos) return id;
  id.revision = text.substr(at + 1);
  if (!is_revision(id.revision)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("\"{:.200}\" is not a revision; a revision is a branch, a tag or a commit",
                    id.revision)};
  }
  return id;
}

bool is_safe_file_name(std::string_view name) {
  if (name.empty() || name.size() > kFileNameBytesMax) return false;
  const bool has_control = std::any_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
  });
  if (has_control) return false;
  const auto parts = parts_of(name);
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return !part.empty() && part != "." && part != ".." && part.size() <= kFilePartBytesMax;
  });
}

}  // namespace lockstep
