// Files of which only some pieces are here, as their readers see them (base/files/mapped_file.h).
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "base/files/mapped_file.h"
#include "hub/files/piece_store.h"
#include "hub/files/range_file.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

constexpr uint64_t kPage = 1 << 16;  // a multiple of every system's page
constexpr PieceCut kCutOfPages{.size = 3 * kPage + 100, .piece_bytes = kPage};

std::filesystem::path partial_in(const TemporaryFolder& folder) {
  return PieceStore::partial_path(folder.path() / "blob");
}

std::unique_ptr<RangeFile> with_pieces(const std::filesystem::path& path,
                                       std::initializer_list<uint32_t> pieces) {
  auto file = RangeFile::open(path, kCutOfPages);
  REQUIRE(file.ok());
  for (const uint32_t piece : pieces) {
    const std::string content(kCutOfPages.range(piece).size(), static_cast<char>('a' + piece));
    REQUIRE(file.value()->write(piece, std::as_bytes(std::span(content))).ok());
  }
  return std::move(file.value());
}

// Whether reading the byte kills a process with SIGSEGV.
bool kills(const std::byte& byte) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);  // not the test's handler
    const volatile std::byte* place = &byte;
    ::_exit(*place == std::byte{0} ? 1 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

uint64_t disk_bytes(const std::filesystem::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return static_cast<uint64_t>(status.st_blocks) * 512;
}

}  // namespace

TEST_CASE("a hole in a partial file is an error if checked for, and is never read as zeros") {
  const TemporaryFolder folder;
  const auto path = partial_in(folder);
  with_pieces(path, {0, 2});
  std::filesystem::create_symlink(path.filename(), folder.path() / "model.safetensors");
  const auto file = MappedFile::open(folder.path() / "model.safetensors");
  REQUIRE(file.ok());
  const auto bytes = file.value().bytes();
  REQUIRE(bytes.size() == kCutOfPages.size);
  CHECK(file.value().missing().size() == 2);
  CHECK(file.value().check_here(bytes.first(kPage)).ok());
  CHECK(file.value().check_here(bytes.subspan(2 * kPage, kPage)).ok());
  CHECK(file.value().check_here(bytes.subspan(7, 0)).ok());
  for (const auto& [begin, size] : {std::pair<size_t, size_t>{kPage - 1, 2},
                                    {kPage, 1},
                                    {2 * kPage - 1, 2},
                                    {3 * kPage, 1},
                                    {kCutOfPages.size - 1, 1},
                                    {0, kCutOfPages.size}}) {
    const Status here = file.value().check_here(bytes.subspan(begin, size));
    REQUIRE(!here.ok());
    CHECK(here.error().code == ErrorCode::kNotFound);
    CHECK(here.error().message.find("model.safetensors") != std::string::npos);
  }
  CHECK(bytes[0] == std::byte{'a'});
  CHECK(bytes[2 * kPage] == std::byte{'c'});
  CHECK(!kills(bytes[kPage - 1]));
  CHECK(kills(bytes[kPage]));
  CHECK(kills(bytes[2 * kPage - 1]));
  CHECK(kills(bytes[kCutOfPages.size - 1]));
  const std::string elsewhere(10, 'x');
  CHECK(file.value().check_here(std::as_bytes(std::span(elsewhere))).ok());
  CHECK(!file.value().place_of(std::as_bytes(std::span(elsewhere))));
}

TEST_CASE("a partial file without its journal, or with another's, is not opened") {
  const TemporaryFolder folder;
  const auto path = partial_in(folder);
  with_pieces(path, {0, 1, 2, 3});
  const auto whole = MappedFile::open(path);
  REQUIRE(whole.ok());
  CHECK(whole.value().missing().empty());
  std::filesystem::resize_file(path, kCutOfPages.size + 1);
  CHECK(MappedFile::open(path).error().code == ErrorCode::kCorrupt);
  std::filesystem::resize_file(path, kCutOfPages.size);
  std::filesystem::resize_file(RangeFile::journal_of(path), 10);
  CHECK(MappedFile::open(path).error().code == ErrorCode::kCorrupt);
  std::filesystem::remove(RangeFile::journal_of(path));
  CHECK(MappedFile::open(path).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("a piece is dropped from the disk, but not while the file is mapped") {
  const TemporaryFolder folder;
  const auto path = partial_in(folder);
  const auto file = with_pieces(path, {0, 1, 2, 3});
  const uint64_t before = disk_bytes(path);
  {
    const auto mapped = MappedFile::open(path);
    REQUIRE(mapped.ok());
    const auto dropped = file->drop(1);
    REQUIRE(dropped.ok());
    CHECK(!dropped.value());
    CHECK(file->has(1));
    CHECK(mapped.value().bytes()[kPage] == std::byte{'b'});
  }
  CHECK(file->drop(1).value());
  CHECK(!file->has(1));
  CHECK(file->drop(1).value());  // nothing to do
#ifdef __linux__
  CHECK(disk_bytes(path) + kPage <= before);
#endif
  const auto mapped = MappedFile::open(path);
  REQUIRE(mapped.ok());
  REQUIRE(mapped.value().missing().size() == 1);
  CHECK(mapped.value().missing()[0] == ByteRange{kPage, 2 * kPage});
  CHECK(RangeFile::bytes_in(path, kCutOfPages) == kCutOfPages.size - kPage);
}

TEST_CASE("a reader of a part of a mapped file reads nothing else and blocks nobody") {
  const TemporaryFolder folder;
  const auto path = partial_in(folder);
  const auto file = with_pieces(path, {0, 1, 3});
  auto mapped = MappedFile::open(path);
  REQUIRE(mapped.ok());
  CHECK(mapped.value().is_in_pieces());
  REQUIRE(mapped.value().keep_only({{3 * kPage, 3 * kPage + 10}, {0, 100}}).ok());
  const auto bytes = mapped.value().bytes();
  CHECK(mapped.value().check_here(bytes.first(100)).ok());
  CHECK(mapped.value().check_here(bytes.subspan(3 * kPage, 10)).ok());
  CHECK(!mapped.value().check_here(bytes.subspan(99, 2)).ok());
  CHECK(!mapped.value().check_here(bytes.subspan(kPage, 1)).ok());
  CHECK(bytes[0] == std::byte{'a'});
  CHECK(bytes[3 * kPage] == std::byte{'d'});
  CHECK(file->drop(1).value());
  CHECK(kills(bytes[kPage]));
  CHECK(kills(bytes[2 * kPage]));
}
