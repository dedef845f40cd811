#include "hub/files/range_file.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/files/mapped_file.h"
#include "hub/files/piece_store.h"
#include "support/temporary_folder.h"
#include "support/text.h"

using namespace lockstep;

namespace {

constexpr PieceCut kCutOfTens{.size = 25, .piece_bytes = 10};

std::string read_piece(const RangeFile& file, uint32_t piece) {
  std::string text(kCutOfTens.range(piece).size(), ' ');
  const auto there = file.read(piece, std::as_writable_bytes(std::span(text)));
  REQUIRE(there.ok());
  return there.value() ? text : "";
}

std::unique_ptr<RangeFile> open(const std::filesystem::path& path, PieceCut cut = kCutOfTens) {
  auto file = RangeFile::open(path, cut);
  REQUIRE(file.ok());
  return std::move(file.value());
}

void change_file(const std::filesystem::path& path, std::streamoff offset, std::string_view text) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file << text;
}

}  // namespace

TEST_CASE("written pieces are still there after the file is reopened, in any order") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "blob";
  CHECK(kCutOfTens.count() == 3);
  CHECK(PieceCut{.size = 0}.count() == 0);
  CHECK(RangeFile::bytes_in(path, kCutOfTens) == 0);
  {
    const auto file = open(path);
    CHECK(file->bytes_there() == 0);
    REQUIRE(file->write(2, bytes_of("12345")).ok());
    REQUIRE(file->write(0, bytes_of("abcdefghij")).ok());
  }
  const auto file = open(path);
  CHECK(file->bytes_there() == 15);
  CHECK(RangeFile::bytes_in(path, kCutOfTens) == 15);
  CHECK(read_piece(*file, 0) == "abcdefghij");
  CHECK(read_piece(*file, 1).empty());
  CHECK(read_piece(*file, 2) == "12345");
  REQUIRE(file->forget(0).ok());
  CHECK(!open(path)->has(0));
  CHECK(open(path)->has(2));
}

TEST_CASE("a journal that was truncated or damaged at any byte lists only intact pieces") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "blob";
  {
    const auto file = open(path);
    for (uint32_t piece : {1u, 0u, 2u}) {
      REQUIRE(file->write(piece, bytes_of(std::string(kCutOfTens.range(piece).size(), 'x'))).ok());
    }
  }
  const auto journal = RangeFile::journal_of(path);
  const auto whole = read_small_file(journal);
  REQUIRE(whole.ok());
  constexpr size_t kHeader = 24, kRecord = 48;
  REQUIRE(whole.value().size() == kHeader + 3 * kRecord);
  for (size_t length = 0; length <= whole.value().size(); ++length) {
    std::ofstream(journal, std::ios::binary | std::ios::trunc) << whole.value().substr(0, length);
    const size_t records = length < kHeader ? 0 : (length - kHeader) / kRecord;
    const uint64_t expected[] = {0, 10, 20, 25};
    CHECK(RangeFile::bytes_in(path, kCutOfTens) == expected[records]);
  }
  for (size_t at = 0; at < whole.value().size(); ++at) {
    std::string damaged = whole.value();
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(journal, std::ios::binary | std::ios::trunc) << damaged;
    const size_t records = at < kHeader ? 0 : (at - kHeader) / kRecord;
    const uint64_t expected[] = {0, 10, 20};
    CHECK(RangeFile::bytes_in(path, kCutOfTens) == expected[records]);
  }
}

TEST_CASE("the next record overwrites a torn one") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "blob";
  REQUIRE(open(path)->write(0, bytes_of("abcdefghij")).ok());
  std::ofstream(RangeFile::journal_of(path), std::ios::binary | std::ios::app) << "torn";
  REQUIRE(open(path)->write(1, bytes_of("klmnopqrst")).ok());
  CHECK(open(path)->bytes_there() == 20);
}

TEST_CASE("another length or piece size starts over, and so does a file of the wrong length") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "blob";
  REQUIRE(open(path)->write(0, bytes_of("abcdefghij")).ok());
  CHECK(open(path, {.size = 25, .piece_bytes = 5})->bytes_there() == 0);
  REQUIRE(open(path)->write(0, bytes_of("abcdefghij")).ok());
  std::filesystem::resize_file(path, 7);
  CHECK(open(path)->bytes_there() == 0);
  CHECK(std::filesystem::file_size(path) == 25);
}

TEST_CASE("a piece that changed on the disk is not read as valid") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "blob";
  const auto file = open(path);
  REQUIRE(file->write(0, bytes_of("abcdefghij")).ok());
  change_file(path, 3, "X");
  CHECK(file->has(0));
  CHECK(read_piece(*file, 0).empty());
}

TEST_CASE("a piece of a file that another process writes is read without modifying it") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "blob";
  const auto peek = [&](uint32_t piece) {
    std::string text(kCutOfTens.range(piece).size(), ' ');
    const auto there =
        RangeFile::read_piece(path, kCutOfTens, piece, std::as_writable_bytes(std::span(text)));
    REQUIRE(there.ok());
    return there.value() ? text : "";
  };
  CHECK(peek(0).empty());
  CHECK(std::filesystem::is_empty(folder.path()));
  const auto file = open(path);
  REQUIRE(file->write(2, bytes_of("12345")).ok());
  CHECK(peek(2) == "12345");
  CHECK(peek(0).empty());
  REQUIRE(file->write(0, bytes_of("abcdefghij")).ok());
  CHECK(peek(0) == "abcdefghij");
  REQUIRE(file->forget(2).ok());
  CHECK(peek(2).empty());
  change_file(path, 3, "x");
  CHECK(peek(0).empty());
}

TEST_CASE("a missing folder is an error with a sentence") {
  const auto file = RangeFile::open("/nonexistent/folder/blob", kCutOfTens);
  REQUIRE(!file.ok());
  CHECK(file.error().code == ErrorCode::kInternal);
  CHECK(file.error().message.find("/nonexistent/folder/blob cannot be written") !=
        std::string::npos);
  CHECK(write_error("/a/b", ENOSPC).code == ErrorCode::kExhausted);
}

TEST_CASE("a small file that cannot get its name leaves no temporary file") {
  const TemporaryFolder folder;
  const auto name = folder.path() / "name";
  std::filesystem::create_directories(name / "in the way");
  CHECK(!write_file_atomically(name, "text").ok());
  const std::filesystem::directory_iterator entries(folder.path());
  CHECK(std::distance(begin(entries), end(entries)) == 1);
  REQUIRE(write_file_atomically(folder.path() / "other", "text").ok());
  CHECK(read_small_file(folder.path() / "other").value() == "text");
}
