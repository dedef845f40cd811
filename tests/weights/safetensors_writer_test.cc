#include "weights/safetensors/safetensors_writer.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "support/temporary_folder.h"
#include "weights/safetensors/checkpoint.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

std::vector<std::byte> pattern(size_t count, int seed) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(seed));
  }
  return bytes;
}

const std::vector<PlannedTensor> kPlan = {{"norm", DType::kBF16, {3}},
                                          {"wide", DType::kF32, {5, 2}},
                                          {"stack", DType::kBF16, {2, 3, 4}},
                                          {"none", DType::kF32, {0}}};

void write_all(SafetensorsWriter& writer) {
  for (size_t i = kPlan.size(); i-- > 0;) {
    const auto bytes = pattern(kPlan[i].bytes(), static_cast<int>(i));
    const size_t half = bytes.size() / 2;
    REQUIRE(writer.write(i, half, std::span(bytes).subspan(half)).ok());
    REQUIRE(writer.write(i, 0, std::span(bytes).first(half)).ok());
  }
  REQUIRE(writer.finish().ok());
}

}  // namespace

TEST_CASE("tensors written in pieces in any order are read back, from one file or several") {
  for (const uint64_t file_bytes_max : {SafetensorsWriter::kFileBytesMax, uint64_t{50}}) {
    const TemporaryFolder folder;
    auto writer = SafetensorsWriter::create(folder.path(), kPlan, file_bytes_max);
    REQUIRE(writer.ok());
    write_all(writer.value());
    CHECK(fs::exists(folder.path() / "model.safetensors") == (file_bytes_max > 50));
    CHECK(fs::exists(folder.path() / "model-00001-of-00002.safetensors") == (file_bytes_max == 50));
    const auto checkpoint = Checkpoint::open(folder.path());
    REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
    for (size_t i = 0; i < kPlan.size(); ++i) {
      const auto tensor = checkpoint.value()->tensor(kPlan[i].name);
      REQUIRE(tensor.ok());
      CHECK(tensor.value()->dtype == kPlan[i].dtype);
      CHECK(tensor.value()->shape == kPlan[i].shape);
      const auto bytes = pattern(kPlan[i].bytes(), static_cast<int>(i));
      CHECK(std::equal(bytes.begin(), bytes.end(), tensor.value()->bytes.begin(),
                       tensor.value()->bytes.end()));
    }
  }
}

TEST_CASE("data begins at a multiple of eight and wide elements come first") {
  const TemporaryFolder folder;
  auto writer = SafetensorsWriter::create(folder.path(), kPlan);
  REQUIRE(writer.ok());
  write_all(writer.value());
  const auto file = folder.path() / "model.safetensors";
  CHECK(fs::file_size(file) == writer.value().file_bytes());
  std::ifstream stream(file, std::ios::binary);
  uint64_t header = 0;
  stream.read(reinterpret_cast<char*>(&header), 8);
  CHECK((header + 8) % 8 == 0);
  std::string text(header, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(header));
  CHECK(text.find("\"format\":\"mlx\"") != std::string::npos);
  CHECK(text.find("\"wide\"") < text.find("\"norm\""));
}

TEST_CASE("a missing folder and an existing file are errors that name it") {
  const TemporaryFolder folder;
  auto missing = SafetensorsWriter::create(folder.path() / "missing", kPlan);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find("missing/model.safetensors") != std::string::npos);
  std::ofstream(folder.path() / "model.safetensors") << "mine";
  CHECK_FALSE(SafetensorsWriter::create(folder.path(), kPlan).ok());
  CHECK(fs::file_size(folder.path() / "model.safetensors") == 4);
}

TEST_CASE("a write that the system refuses is an error that names the file") {
  const TemporaryFolder folder;
  auto writer = SafetensorsWriter::create(folder.path(), {{"big", DType::kF32, {1 << 20}}});
  REQUIRE(writer.ok());
  // A limit on file size stands for a full disk.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit low{size_t{1} << 20, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  const Status status = writer.value().write(0, 0, pattern(size_t{4} << 20, 0));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find("cannot write") != std::string::npos);
  CHECK(status.error().message.find("model.safetensors") != std::string::npos);
}
