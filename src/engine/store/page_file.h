// The files of the page store (engine/store/page_store.h): one for each page and part of it that a
// rank held. Head, a check of every block, blocks; the name holds key and part:
//
//   <key, 64 hex digits>.<layer begin>-<layer end>.<head begin>-<head end>
//
// The state of recurrent layers where a page ends is in files of its own, with the page's key, the
// part of the state, and ".state" at the end.
//
// A file is written under another name and renamed, so that a process that dies leaves no half
// page. Writes do not wait for the disk (no fsync): the checks find damage by a power cut on
// reading. Numbers are in the machine's byte order; a file in the other order is rejected.
// Functions over files; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/secrets.h"
#include "base/result.h"
#include "model/load/page_shape.h"

namespace lockstep {

inline constexpr uint32_t kPageFileVersion = 2;
// Per file. The largest known model has 61 layers, the most heads in a layer are 128.
inline constexpr size_t kPageBlocksMax = size_t{1} << 16;
// The prefix of files that are being written.
inline constexpr std::string_view kUnfinishedPage = "unfinished-";

enum class PageFileKind : uint8_t { kPage, kState };

struct PageFileName {
  Digest key{};
  PageShape part;  // without block_bytes: that is the model's
  PageFileKind kind = PageFileKind::kPage;
};

std::string page_file_name(const Digest& key, const PageShape& part,
                           PageFileKind kind = PageFileKind::kPage);
// Empty for names that no page has.
std::optional<PageFileName> parse_page_file_name(std::string_view name);

// The page's key, model and part, as the file's head must state them.
struct PageFileHead {
  Digest key{};
  Digest model{};
  PageShape part;
  PageFileKind kind = PageFileKind::kPage;
};

size_t page_file_head_bytes(const PageShape& part);
inline uint64_t page_file_bytes(const PageShape& part) {
  return page_file_head_bytes(part) + part.page_bytes();
}
// `blocks`: part.page_bytes().
std::vector<std::byte> encode_page_file_head(const PageFileHead& head,
                                             std::span<const std::byte> blocks);
// The checks of the blocks, in order; kCorrupt if `bytes` is not the head of this page.
Result<std::vector<uint64_t>> decode_page_file_head(std::span<const std::byte> bytes,
                                                    const PageFileHead& expected);

// 0600, under its final name or not at all. kExhausted: the disk is full.
Status write_page_file(const std::filesystem::path& path, const PageFileHead& head,
                       std::span<const std::byte> blocks);

// A rank's part of a page while it is put together from files.
struct PagePart {
  PageShape shape;
  std::span<std::byte> bytes;    // shape.page_bytes()
  std::vector<bool> is_there{};  // (blocks)

  bool is_whole() const;
  // Whether blocks of `other` are missing here.
  bool lacks(const PageShape& other) const;
  void mark(const PageShape& other);  // its blocks are present
};

// Reads the blocks that `page` lacks from a file. kNotFound, kCorrupt (too short, too long, another
// page's, a block with a wrong check) or kInternal; blocks that were right stay.
Status read_page_file(const std::filesystem::path& path, const PageFileHead& expected,
                      PagePart& page);

}  // namespace lockstep
