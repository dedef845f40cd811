#include "base/files/mapped_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

TEST_CASE("a mapped file shows the bytes of the file, and survives a move") {
  const TemporaryFolder folder;
  const auto path = folder.write("plain", "hello");
  auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  REQUIRE(file.ok());
  CHECK(text_of(file.value()) == "hello");
  const MappedFile moved = std::move(file.value());
  CHECK(text_of(moved) == "hello");
  CHECK(file.value().bytes().empty());
}

TEST_CASE("an empty file is mapped as no bytes") {
  const TemporaryFolder folder;
  const auto path = folder.write("empty", "");
  const auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  REQUIRE(file.ok());
  CHECK(file.value().bytes().empty());
}

TEST_CASE("an unreadable file is an error with its path") {
  const auto missing = MappedFile::open("/nonexistent/model.safetensors");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message == "/nonexistent/model.safetensors does not exist");

  const auto folder = MappedFile::open("/tmp");
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().code == ErrorCode::kInvalidArgument);
  CHECK(folder.error().message == "/tmp is a folder, not a file");
}

TEST_CASE("a small file is read whole, up to the limit") {
  const TemporaryFolder folder;
  const auto path = folder.write("small", std::string("a\0b", 3));
  CHECK(read_small_file(path).value() == std::string("a\0b", 3));
  CHECK(read_small_file(path, 3).ok());
  const auto refused = read_small_file(path, 2);
  std::filesystem::remove(path);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message ==
        path.string() + " has 3 bytes, but at most 2 are read; check that it is the right file");
  CHECK(read_small_file(path).error().code == ErrorCode::kNotFound);
}

TEST_CASE("a named pipe is refused without waiting for its writer") {
  const TemporaryFolder folder;
  const auto path = folder.write("pipe", "");
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const auto pipe = MappedFile::open(path);
  std::filesystem::remove(path);
  REQUIRE_FALSE(pipe.ok());
  CHECK(pipe.error().message == path.string() + " is not a regular file");
}

TEST_CASE("a file without permission says so") {
  if (::geteuid() == 0) return;  // root may read everything
  const TemporaryFolder folder;
  const auto path = folder.write("secret", "x");
  ::chmod(path.c_str(), 0);
  const auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().code == ErrorCode::kInternal);
  CHECK(file.error().message == "cannot read " + path.string() + ": Permission denied");
}
