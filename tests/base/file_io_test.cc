#include "base/file_io.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/unique_fd.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// What is there of `size` bytes from `offset`.
std::string read_text(int fd, size_t size, uint64_t offset) {
  std::string text(size, '?');
  const ssize_t got = read_at(fd, std::as_writable_bytes(std::span(text)), offset);
  REQUIRE(got >= 0);
  text.resize(static_cast<size_t>(got));
  return text;
}

}  // namespace

TEST_CASE("file_io: what is written at an offset is read there, and the end shortens it") {
  const TemporaryFolder folder;
  const UniqueFd fd(::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(write_at(fd.get(), bytes_of("machines"), 5));
  REQUIRE(write_at(fd.get(), bytes_of("lock "), 0));
  REQUIRE(write_at(fd.get(), {}, 1000));
  CHECK(read_text(fd.get(), 13, 0) == "lock machines");
  CHECK(read_text(fd.get(), 100, 9) == "ines");
  CHECK(read_text(fd.get(), 1, 13).empty());
  CHECK(read_text(fd.get(), 0, 0).empty());
  CHECK(::lseek(fd.get(), 0, SEEK_CUR) == 0);  // the place of others is left alone
}

TEST_CASE("file_io: a file beyond 4 GiB") {
  const TemporaryFolder folder;
  const UniqueFd fd(::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(write_at(fd.get(), bytes_of("far"), (uint64_t{1} << 32) + 7));  // with a hole before
  CHECK(read_text(fd.get(), 9, (uint64_t{1} << 32) + 7) == "far");
  CHECK(read_text(fd.get(), 3, 7) == std::string(3, '\0'));
}

TEST_CASE("file_io: what cannot be read or written says why") {
  const TemporaryFolder folder;
  folder.write("file", "text");
  const UniqueFd reader(::open((folder.path() / "file").c_str(), O_RDONLY | O_CLOEXEC));
  errno = 0;
  CHECK_FALSE(write_at(reader.get(), bytes_of("x"), 0));
  CHECK(errno == EBADF);
  const UniqueFd writer(::open((folder.path() / "file").c_str(), O_WRONLY | O_CLOEXEC));
  std::array<std::byte, 1> byte;
  errno = 0;
  CHECK(read_at(writer.get(), byte, 0) == -1);
  CHECK(errno == EBADF);
}

TEST_CASE("file_io: a full disk is told as such" *
          doctest::skip(::access("/dev/full", W_OK) != 0)) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full.is_open());
  errno = 0;
  CHECK_FALSE(write_at(full.get(), bytes_of("x"), 0));
  CHECK(errno == ENOSPC);
}
