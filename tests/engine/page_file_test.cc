#include "engine/store/page_file.h"

#include <doctest/doctest.h>

#include <array>
#include <fstream>

#include "engine/store/page_store.h"
#include "kernels/kernels.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

constexpr PageShape kPart{
    .layer_begin = 1, .layer_end = 3, .head_begin = 0, .head_end = 2, .block_bytes = 16};

Digest digest_of(int value) {
  Digest digest{};
  digest[0] = static_cast<std::byte>(value);
  return digest;
}

std::vector<std::byte> blocks_of(const PageShape& part) {
  std::vector<std::byte> blocks(part.page_bytes());
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i);
  return blocks;
}

}  // namespace

TEST_CASE("a page's key covers its tokens and all before them") {
  std::array<int32_t, kPagePositions> tokens{};
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  const PageKey first = page_key({}, tokens);
  CHECK(first == page_key({}, tokens));
  CHECK(page_key(first, tokens) != first);
  tokens[63] = 1 << 20;
  CHECK(page_key({}, tokens) != first);
}

TEST_CASE("a page's file name is read as it was written, and nothing else is one") {
  const std::string name = page_file_name(digest_of(0xab), kPart);
  CHECK(name == "ab" + std::string(62, '0') + ".1-3.0-2");
  const auto parsed = parse_page_file_name(name);
  REQUIRE(parsed);
  CHECK(parsed->key == digest_of(0xab));
  CHECK(parsed->part.layer_begin == 1);
  CHECK(parsed->part.head_end == 2);
  const std::string key = name.substr(0, 64);
  for (const char* rest : {"", ".", ".1-3", ".1-3.", ".1-3.0-2x", ".01-3.0-2", ".3-3.0-2",
                           ".4-3.0-2", ".1-3.0-0", ".-1-3.0-2", ".1-65537.0-2", ".0-65536.0-65536",
                           ".1-3.0-2.0", " .1-3.0-2", ".1-3.0-99999999999999999999"}) {
    CAPTURE(rest);
    CHECK_FALSE(parse_page_file_name(key + rest));
  }
  CHECK(parsed->kind == PageFileKind::kPage);
  const std::string state = page_file_name(digest_of(0xab), kPart, PageFileKind::kState);
  CHECK(state == name + ".state");
  REQUIRE(parse_page_file_name(state));
  CHECK(parse_page_file_name(state)->kind == PageFileKind::kState);
  CHECK(parse_page_file_name(state)->part == parsed->part);
  for (const char* rest : {".state", ".1-3.state", ".1-3.0-2.state.state", ".1-3.0-2state"}) {
    CHECK_FALSE(parse_page_file_name(key + rest));
  }
  CHECK_FALSE(parse_page_file_name(key.substr(1) + ".1-3.0-2"));
  CHECK_FALSE(parse_page_file_name("AB" + key.substr(2) + ".1-3.0-2"));
  CHECK_FALSE(parse_page_file_name(""));
}

TEST_CASE("a head that is another page's, truncated or changed is refused") {
  const PageFileHead head{.key = digest_of(1), .model = digest_of(2), .part = kPart};
  std::vector<std::byte> bytes = encode_page_file_head(head, blocks_of(kPart));
  CHECK(bytes.size() == page_file_head_bytes(kPart));
  const auto checks = decode_page_file_head(bytes, head);
  REQUIRE(checks.ok());
  CHECK(checks.value().size() == 4);
  PageFileHead other = head;
  other.model = digest_of(3);
  CHECK(decode_page_file_head(bytes, other).error().code == ErrorCode::kCorrupt);
  other = head;
  other.kind = PageFileKind::kState;
  CHECK_FALSE(decode_page_file_head(bytes, other).ok());
  other = head;
  other.key = digest_of(3);
  CHECK_FALSE(decode_page_file_head(bytes, other).ok());
  other = head;
  other.part.block_bytes = 32;
  CHECK_FALSE(decode_page_file_head(bytes, other).ok());
  CHECK_FALSE(decode_page_file_head(std::span(bytes).first(bytes.size() - 1), head).ok());
  CHECK_FALSE(decode_page_file_head({}, head).ok());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{4};
    CHECK_FALSE(decode_page_file_head(bytes, head).ok());
    bytes[i] ^= std::byte{4};
  }
}

TEST_CASE("a rank reads its blocks from files of other parts") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "page";
  const PageFileHead head{.key = digest_of(1), .model = digest_of(2), .part = kPart};
  REQUIRE(write_page_file(path, head, blocks_of(kPart)).ok());
  CHECK(std::filesystem::file_size(path) == page_file_bytes(kPart));
  CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms(0600));
  // Layers 2 and 3 of head 1: the file has only layer 2.
  const PageShape shape{
      .layer_begin = 2, .layer_end = 4, .head_begin = 1, .head_end = 2, .block_bytes = 16};
  std::vector<std::byte> bytes(shape.page_bytes());
  PagePart page{.shape = shape, .bytes = bytes, .is_there = std::vector<bool>(2)};
  CHECK(page.lacks(kPart));
  REQUIRE(read_page_file(path, head, page).ok());
  CHECK(page.is_there == std::vector<bool>{true, false});
  CHECK_FALSE(page.lacks(kPart));
  CHECK_FALSE(page.is_whole());
  for (size_t i = 0; i < 16; ++i) CHECK(bytes[i] == static_cast<std::byte>(48 + i));
}

TEST_CASE("a file that is changed anywhere, or of another length, is corrupt") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "page";
  const PageFileHead head{.key = digest_of(1), .model = digest_of(2), .part = kPart};
  REQUIRE(write_page_file(path, head, blocks_of(kPart)).ok());
  const auto load = [&] {
    std::vector<std::byte> bytes(kPart.page_bytes());
    PagePart page{.shape = kPart, .bytes = bytes, .is_there = std::vector<bool>(4)};
    return read_page_file(path, head, page);
  };
  REQUIRE(load().ok());
  for (uint64_t at = 0; at < page_file_bytes(kPart); at += 7) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
    file.flush();
    CAPTURE(at);
    CHECK(load().error().code == ErrorCode::kCorrupt);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }
  REQUIRE(load().ok());
  std::filesystem::resize_file(path, page_file_bytes(kPart) - 1);
  CHECK(load().error().code == ErrorCode::kCorrupt);
  std::filesystem::resize_file(path, page_file_bytes(kPart) + 1);
  CHECK(load().error().code == ErrorCode::kCorrupt);
  std::filesystem::resize_file(path, 0);
  CHECK(load().error().code == ErrorCode::kCorrupt);
  std::filesystem::remove(path);
  CHECK(load().error().code == ErrorCode::kNotFound);
  std::filesystem::create_symlink(folder.path() / "elsewhere", path);
  CHECK(load().error().code == ErrorCode::kCorrupt);
}
