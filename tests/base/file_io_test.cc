#include "base/files/file_io.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/files/unique_fd.h"
#include "support/temporary_folder.h"
#include "support/text.h"

using namespace lockstep;

namespace {

// Up to `size` bytes from `offset`.
std::string read_text(int fd, size_t size, uint64_t offset) {
  std::string text(size, '?');
  const ssize_t got = read_at(fd, std::as_writable_bytes(std::span(text)), offset);
  REQUIRE(got >= 0);
  text.resize(static_cast<size_t>(got));
  return text;
}

}  // namespace

TEST_CASE("file_io: data written at an offset is read there, and reads stop at the end") {
  const TemporaryFolder folder;
  const UniqueFd fd(::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(write_at(fd.get(), bytes_of("machines"), 5));
  REQUIRE(write_at(fd.get(), bytes_of("lock "), 0));
  REQUIRE(write_at(fd.get(), {}, 1000));
  CHECK(read_text(fd.get(), 13, 0) == "lock machines");
  CHECK(read_text(fd.get(), 100, 9) == "ines");
  CHECK(read_text(fd.get(), 1, 13).empty());
  CHECK(read_text(fd.get(), 0, 0).empty());
  CHECK(::lseek(fd.get(), 0, SEEK_CUR) == 0);  // the shared file offset does not move
}

TEST_CASE("file_io: a file beyond 4 GiB") {
  const TemporaryFolder folder;
  const UniqueFd fd(::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(write_at(fd.get(), bytes_of("far"), (uint64_t{1} << 32) + 7));  // with a hole before
  CHECK(read_text(fd.get(), 9, (uint64_t{1} << 32) + 7) == "far");
  CHECK(read_text(fd.get(), 3, 7) == std::string(3, '\0'));
}

TEST_CASE("file_io: a failed read or write says why") {
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

TEST_CASE("file_io: a full disk is reported as such" *
          doctest::skip(::access("/dev/full", W_OK) != 0)) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full.is_open());
  errno = 0;
  CHECK_FALSE(write_at(full.get(), bytes_of("x"), 0));
  CHECK(errno == ENOSPC);
}

TEST_CASE("file_io: only a regular file is opened for reading, and a pipe does not block") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "named";
  const auto error_of = [&](Links links = Links::kFollow) {
    const auto opened = open_regular(path, links);
    return opened.ok() ? std::string() : opened.error().message;
  };
  CHECK(error_of() == path.string() + " does not exist");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(error_of() == path.string() + " is not a regular file");
  REQUIRE(::unlink(path.c_str()) == 0);

  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.string().size() < sizeof(address.sun_path));
  path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  CHECK(error_of() == path.string() + " is not a regular file");
  REQUIRE(::unlink(path.c_str()) == 0);

  REQUIRE(::mkdir(path.c_str(), 0700) == 0);
  CHECK(error_of() == path.string() + " is a folder, not a file");
  REQUIRE(::rmdir(path.c_str()) == 0);
  REQUIRE(::symlink("/dev/zero", path.c_str()) == 0);
  CHECK(error_of() == path.string() + " is not a regular file");
  REQUIRE(::unlink(path.c_str()) == 0);

  const UniqueFd file(::open((folder.path() / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::symlink("file", path.c_str()) == 0);
  CHECK(error_of() == "");
  CHECK(error_of(Links::kRefuse) != "");
}
