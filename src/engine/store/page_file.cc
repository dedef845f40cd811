#include "engine/store/page_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/check.h"
#include "base/crypto/hasher.h"
#include "base/files/file_io.h"
#include "base/files/unique_fd.h"
#include "base/hex.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKeyDigits = 2 * sizeof(Digest);
constexpr int kPartEndMax = 1 << 16;  // for layers and for heads

constexpr std::string_view kStateEnding = ".state";

using Magic = std::array<char, 8>;
constexpr Magic kPageMagic{'l', 's', 'k', 'v', 'p', 'a', 'g', 'e'};
constexpr Magic kStateMagic{'l', 's', 'd', 's', 't', 'a', 't', 'e'};

struct FixedHead {
  Magic magic{};
  uint32_t version = kPageFileVersion;
  uint32_t order = 0x01020304;
  Digest key{};
  Digest model{};
  int32_t layer_begin = 0, layer_end = 0, head_begin = 0, head_end = 0;
  uint64_t block_bytes = 0;
};
constexpr size_t kCheckBytes = sizeof(uint64_t);
static_assert(sizeof(FixedHead) == 104 && std::has_unique_object_representations_v<FixedHead>);

uint64_t check_of(std::span<const std::byte> bytes) {
  const Digest digest = sha256(bytes);
  uint64_t check;
  std::memcpy(&check, digest.data(), sizeof(check));
  return check;
}

FixedHead fixed_head(const PageFileHead& head) {
  return {.magic = head.kind == PageFileKind::kState ? kStateMagic : kPageMagic,
          .key = head.key,
          .model = head.model,
          .layer_begin = head.part.layer_begin,
          .layer_end = head.part.layer_end,
          .head_begin = head.part.head_begin,
          .head_end = head.part.head_end,
          .block_bytes = head.part.block_bytes};
}

Error page_file_error(const fs::path& path, std::string_view what) {
  ErrorCode code = ErrorCode::kInternal;
  if (errno == ENOENT) code = ErrorCode::kNotFound;
  if (errno == ENOSPC || errno == EDQUOT) code = ErrorCode::kExhausted;
  return {code, fmt::format("{} cannot be {}: {}", path.string(), what, std::strerror(errno))};
}

Error corrupt(const fs::path& path) {
  return {ErrorCode::kCorrupt, fmt::format("{} is not a valid page file", path.string())};
}

// False with errno 0 at the end of the file.
bool read_all(int fd, std::span<std::byte> bytes, uint64_t offset) {
  const ssize_t got = read_at(fd, bytes, offset);
  if (got >= 0) errno = 0;
  return got == static_cast<ssize_t>(bytes.size());
}

// Parses all of `text` as "3-17", the first number below the second.
bool parse_range(std::string_view text, int& begin, int& end) {
  const char* last = text.data() + text.size();
  const auto first = std::from_chars(text.data(), last, begin);
  if (first.ec != std::errc() || first.ptr == last || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, last, end);
  return second.ec == std::errc() && second.ptr == last && begin >= 0 && begin < end &&
         end <= kPartEndMax;
}

size_t block_index(const PageShape& part, int layer, int head) {
  return static_cast<size_t>(layer - part.layer_begin) * static_cast<size_t>(part.heads()) +
         static_cast<size_t>(head - part.head_begin);
}

}  // namespace

std::string page_file_name(const Digest& key, const PageShape& part, PageFileKind kind) {
  return fmt::format("{}.{}-{}.{}-{}{}", to_hex(key), part.layer_begin, part.layer_end,
                     part.head_begin, part.head_end,
                     kind == PageFileKind::kState ? kStateEnding : "");
}

std::optional<PageFileName> parse_page_file_name(std::string_view name) {
  if (name.size() < kKeyDigits || !is_hex(name.substr(0, kKeyDigits), kKeyDigits)) return {};
  PageFileName parsed;
  if (!from_hex(name.substr(0, kKeyDigits), parsed.key)) return {};
  std::string_view rest = name.substr(kKeyDigits);
  if (rest.ends_with(kStateEnding)) {
    parsed.kind = PageFileKind::kState;
    rest.remove_suffix(kStateEnding.size());
  }
  const size_t dot = rest.find('.', 1);
  if (rest.empty() || rest[0] != '.' || dot == std::string_view::npos) return {};
  PageShape& part = parsed.part;
  const bool is_part = parse_range(rest.substr(1, dot - 1), part.layer_begin, part.layer_end) &&
                       parse_range(rest.substr(dot + 1), part.head_begin, part.head_end);
  // One page has one name: "01-2" is not a page.
  if (!is_part || part.blocks() > kPageBlocksMax) return {};
  if (page_file_name(parsed.key, part, parsed.kind) != name) return {};
  return parsed;
}

size_t page_file_head_bytes(const PageShape& part) {
  return sizeof(FixedHead) + (part.blocks() + 1) * kCheckBytes;
}

std::vector<std::byte> encode_page_file_head(const PageFileHead& head,
                                             std::span<const std::byte> blocks) {
  LOCKSTEP_CHECK(blocks.size() == head.part.page_bytes());
  std::vector<std::byte> bytes(page_file_head_bytes(head.part));
  const FixedHead fixed = fixed_head(head);
  std::memcpy(bytes.data(), &fixed, sizeof(fixed));
  size_t at = sizeof(fixed);
  const auto add = [&](uint64_t check) {
    std::memcpy(bytes.data() + at, &check, sizeof(check));
    at += sizeof(check);
  };
  for (size_t i = 0; i < head.part.blocks(); ++i) {
    add(check_of(blocks.subspan(i * head.part.block_bytes, head.part.block_bytes)));
  }
  add(check_of(std::span(bytes).first(at)));
  return bytes;
}

Result<std::vector<uint64_t>> decode_page_file_head(std::span<const std::byte> bytes,
                                                    const PageFileHead& expected) {
  const FixedHead fixed = fixed_head(expected);
  const bool is_head = bytes.size() == page_file_head_bytes(expected.part) &&
                       std::memcmp(bytes.data(), &fixed, sizeof(fixed)) == 0;
  if (!is_head) return Error{ErrorCode::kCorrupt, "the header belongs to another page"};
  std::vector<uint64_t> checks(expected.part.blocks() + 1);
  std::memcpy(checks.data(), bytes.data() + sizeof(fixed), checks.size() * kCheckBytes);
  if (checks.back() != check_of(bytes.first(bytes.size() - kCheckBytes))) {
    return Error{ErrorCode::kCorrupt, "the header's checksum is wrong"};
  }
  checks.pop_back();
  return checks;
}

Status write_page_file(const fs::path& path, const PageFileHead& head,
                       std::span<const std::byte> blocks) {
  const std::vector<std::byte> encoded = encode_page_file_head(head, blocks);
  std::string unfinished = (path.parent_path() / kUnfinishedPage).string() + "XXXXXX";
  const UniqueFd fd(::mkostemp(unfinished.data(), O_CLOEXEC));  // 0600
  if (!fd.is_open()) return page_file_error(path, "written");
  // Unlocked files are removed as leftovers: if that happened to this one, it is gone.
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return Error{ErrorCode::kNotFound, "it is gone"};
  const bool is_written = write_at(fd.get(), encoded, 0) &&
                          write_at(fd.get(), blocks, encoded.size()) &&
                          ::rename(unfinished.c_str(), path.c_str()) == 0;
  if (is_written) return Ok{};
  Error error = page_file_error(path, "written");
  ::unlink(unfinished.c_str());
  return error;
}

bool PagePart::is_whole() const {
  return std::all_of(is_there.begin(), is_there.end(), [](bool there) { return there; });
}

bool PagePart::lacks(const PageShape& other) const {
  const PageShape common = common_part(shape, other);
  for (int layer = common.layer_begin; layer < common.layer_end; ++layer) {
    for (int head = common.head_begin; head < common.head_end; ++head) {
      if (!is_there[block_index(shape, layer, head)]) return true;
    }
  }
  return false;
}

void PagePart::mark(const PageShape& other) {
  const PageShape common = common_part(shape, other);
  for (int layer = common.layer_begin; layer < common.layer_end; ++layer) {
    for (int head = common.head_begin; head < common.head_end; ++head) {
      is_there[block_index(shape, layer, head)] = true;
    }
  }
}

Status read_page_file(const fs::path& path, const PageFileHead& expected, PagePart& page) {
  const PageShape& part = expected.part;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.is_open()) return errno == ELOOP ? corrupt(path) : page_file_error(path, "read");
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return page_file_error(path, "read");
  if (!S_ISREG(facts.st_mode) || static_cast<uint64_t>(facts.st_size) != page_file_bytes(part)) {
    return corrupt(path);
  }
  std::vector<std::byte> head(page_file_head_bytes(part));
  if (!read_all(fd.get(), head, 0))
    return errno == 0 ? corrupt(path) : page_file_error(path, "read");
  const auto checks = decode_page_file_head(head, expected);
  if (!checks.ok()) return corrupt(path);
  const PageShape common = common_part(page.shape, part);
  if (common.blocks() == 0) return Ok{};
  const size_t run_bytes = static_cast<size_t>(common.heads()) * part.block_bytes;
  bool is_sound = true;
  for (int layer = common.layer_begin; layer < common.layer_end; ++layer) {
    const size_t from = block_index(part, layer, common.head_begin);
    const size_t to = block_index(page.shape, layer, common.head_begin);
    const auto run = page.bytes.subspan(to * part.block_bytes, run_bytes);
    std::fill_n(page.is_there.begin() + static_cast<ptrdiff_t>(to), common.heads(), false);
    if (!read_all(fd.get(), run, head.size() + from * part.block_bytes)) {
      return errno == 0 ? corrupt(path) : page_file_error(path, "read");
    }
    for (size_t i = 0; i < static_cast<size_t>(common.heads()); ++i) {
      const bool is_right =
          check_of(run.subspan(i * part.block_bytes, part.block_bytes)) == checks.value()[from + i];
      page.is_there[to + i] = is_right;
      is_sound = is_sound && is_right;
    }
  }
  return is_sound ? Status(Ok{}) : Status(corrupt(path));
}

}  // namespace lockstep
