#include "weights/safetensors/checkpoint.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

std::string file_with(const std::string& tensor, const std::string& dtype, size_t bytes) {
  const size_t element_bytes = dtype == "F32" ? 4 : 2;
  const std::string header = "{\"" + tensor + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" +
                             std::to_string(bytes / element_bytes) + "],\"data_offsets\":[0," +
                             std::to_string(bytes) + "]}}";
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i);
  return length + header + std::string(bytes, 'x');
}

Error open_error(const fs::path& folder) {
  const auto checkpoint = Checkpoint::open(folder);
  REQUIRE_FALSE(checkpoint.ok());
  return checkpoint.error();
}

}  // namespace

TEST_CASE("the checkpoint that ships with the project opens and has its tensors") {
  const auto checkpoint = Checkpoint::open(LOCKSTEP_SOURCE_DIR "/models/stories260K");
  REQUIRE(checkpoint.ok());
  const auto embedding = checkpoint.value()->tensor("model.embed_tokens.weight");
  REQUIRE(embedding.ok());
  CHECK(embedding.value()->shape == std::vector<int64_t>{512, 64});
  CHECK(embedding.value()->bytes.size() == 512 * 64 * 4);
  CHECK(checkpoint.value()->has("model.norm.weight"));
  CHECK_FALSE(checkpoint.value()->has("model.norm.bias"));
  const auto missing = checkpoint.value()->tensor("model.norm.bias");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message == "the checkpoint has no tensor model.norm.bias");
}

TEST_CASE("an index spreads tensors over files, and a tensor it does not name is left out") {
  const TemporaryFolder folder;
  folder.write("one.safetensors", file_with("a", "F32", 8));
  folder.write("two.safetensors", file_with("b", "BF16", 4));
  folder.write("three.safetensors", file_with("c", "I16", 4));
  folder.write("model.safetensors.index.json",
               R"({"metadata":{},"weight_map":{"a":"one.safetensors","b":"two.safetensors",)"
               R"("c":"three.safetensors"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  REQUIRE(checkpoint.ok());
  CHECK(checkpoint.value()->tensors().size() == 2);
  CHECK(checkpoint.value()->tensor("b").value()->dtype == DType::kBF16);
  CHECK(checkpoint.value()->tensor("a").value()->bytes[7] == std::byte{'x'});
  const auto unsupported = checkpoint.value()->tensor("c");
  REQUIRE_FALSE(unsupported.ok());
  CHECK(unsupported.error().code == ErrorCode::kUnsupported);
  CHECK(unsupported.error().message ==
        "tensor c has the dtype I16, which lockstep cannot compute with");
  CHECK(checkpoint.value()->has("c"));
  CHECK_FALSE(checkpoint.value()->has("d"));
}

TEST_CASE("a folder without safetensors says what was expected") {
  const TemporaryFolder folder;
  const Error error = open_error(folder.path());
  CHECK(error.code == ErrorCode::kNotFound);
  CHECK(error.message ==
        folder.path().string() + " has neither model.safetensors nor model.safetensors.index.json");
  CHECK(open_error(folder.path() / "no").message ==
        (folder.path() / "no").string() + " does not exist");
  folder.write("file", "");
  CHECK(open_error(folder.path() / "file").code == ErrorCode::kInvalidArgument);
}

TEST_CASE("a broken file is named together with its fault") {
  const TemporaryFolder folder;
  const std::string whole = file_with("a", "F32", 8);
  folder.write("model.safetensors", whole.substr(0, whole.size() - 1));
  const Error error = open_error(folder.path());
  CHECK(error.code == ErrorCode::kCorrupt);
  CHECK(error.message == (folder.path() / "model.safetensors").string() +
                             ": tensor \"a\" ends at byte 8 of the data, which has 7");
  fs::remove(folder.path() / "model.safetensors");
  fs::create_directory(folder.path() / "model.safetensors");
  CHECK(open_error(folder.path()).message.find("is a folder, not a file") != std::string::npos);
}

TEST_CASE("an index that points elsewhere, or at nothing, is refused") {
  const TemporaryFolder folder;
  folder.write("one.safetensors", file_with("a", "F32", 8));
  const auto error_with = [&](const std::string& index) {
    folder.write("model.safetensors.index.json", index);
    return open_error(folder.path()).message;
  };
  for (const char* name :
       {"../one.safetensors", "/etc/passwd", "..", ".", "", "x\\\\y", "x\\u0000y"}) {
    CAPTURE(name);
    const std::string message = error_with(std::string(R"({"weight_map":{"a":")") + name + "\"}}");
    CHECK(message.find("which is not a file name in this folder") != std::string::npos);
  }
  CHECK(error_with(R"({"weight_map":{"a":7}})").find("not a file name") != std::string::npos);
  CHECK(error_with("{}").find("the index has no weight_map") != std::string::npos);
  CHECK(error_with("{").find("invalid JSON") != std::string::npos);
  CHECK(error_with(R"({"weight_map":{}})").find("is empty") != std::string::npos);
  CHECK(error_with(R"({"weight_map":{"a":"two.safetensors"}})").find("does not exist") !=
        std::string::npos);
  CHECK(error_with(R"({"weight_map":{"b":"one.safetensors"}})")
            .find("has no tensor b, which the index says it has") != std::string::npos);
}

TEST_CASE("opening a file of 1 TiB reads its header only") {
  const TemporaryFolder folder;
  constexpr uint64_t kDataBytes = uint64_t{1} << 40;
  const std::string header = R"({"a":{"dtype":"F32","shape":[274877906944],"data_offsets":[0,)" +
                             std::to_string(kDataBytes) + "]}}";
  std::string length(8, '\0');
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i);
  folder.write("model.safetensors", length + header);
  std::error_code refused;  // on a file system without sparse files
  fs::resize_file(folder.path() / "model.safetensors", 8 + header.size() + kDataBytes, refused);
  if (refused) {
    MESSAGE("no sparse file of this size here: " << refused.message());
    return;
  }
  const auto checkpoint = Checkpoint::open(folder.path());
  REQUIRE(checkpoint.ok());
  const auto bytes = checkpoint.value()->tensor("a").value()->bytes;
  REQUIRE(bytes.size() == kDataBytes);
#ifdef __linux__
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto middle = reinterpret_cast<uintptr_t>(bytes.data() + kDataBytes / 2);
  unsigned char is_resident = 1;
  REQUIRE(::mincore(reinterpret_cast<void*>(middle / page_bytes * page_bytes), 1, &is_resident) ==
          0);
  CHECK((is_resident & 1) == 0);
#endif
}
