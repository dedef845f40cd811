#include "weights/safetensors/safetensors.h"

#include <doctest/doctest.h>

#include <string>

#include "support/text.h"

using namespace lockstep;

namespace {

std::string with_length(uint64_t length, const std::string& rest) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> 8 * i);
  return file + rest;
}

std::string safetensors(const std::string& header, size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\x01'));
}

std::string error_of_safetensors(const std::string& file) {
  const auto header = read_safetensors_header(bytes_of(file));
  if (header.ok()) return "no error";
  CHECK(header.error().code == ErrorCode::kCorrupt);
  return header.error().message;
}

}  // namespace

TEST_CASE("a header gives the tensors in the order of their data") {
  const std::string file = safetensors(
      R"({"b":{"dtype":"F16","shape":[3],"data_offsets":[8,14]},"__metadata__":{"format":"pt"},)"
      R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}  )",
      14);
  const auto tensors = parse_safetensors(bytes_of(file));
  REQUIRE(tensors.ok());
  REQUIRE(tensors.value().size() == 2);
  CHECK(tensors.value()[0].name == "a");
  CHECK(tensors.value()[0].dtype == DType::kF32);
  CHECK(tensors.value()[0].shape == std::vector<int64_t>{1, 2});
  CHECK(tensors.value()[1].bytes.size() == 6);
  CHECK(tensors.value()[1].bytes.data() == bytes_of(file).data() + file.size() - 6);
}

TEST_CASE("scalars, empty tensors and files without tensors are fine") {
  CHECK(parse_safetensors(bytes_of(safetensors("{}", 0))).value().empty());
  const auto tensors = parse_safetensors(
      bytes_of(safetensors(R"({"none":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},)"
                           R"("one":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}})",
                           2)));
  REQUIRE(tensors.ok());
  CHECK(tensors.value()[0].bytes.empty());
  CHECK(tensors.value()[1].bytes.size() == 2);
}

TEST_CASE("tensors of other dtypes are kept by name, their sizes checked") {
  const auto header = read_safetensors_header(
      bytes_of(safetensors(R"({"ids":{"dtype":"U64","shape":[2],"data_offsets":[0,16]},)"
                           R"("future":{"dtype":"F3","shape":[8],"data_offsets":[16,19]},)"
                           R"("nibbles":{"dtype":"F4","shape":[4],"data_offsets":[19,21]}})",
                           21)));
  REQUIRE(header.ok());
  CHECK(header.value().tensors.empty());
  REQUIRE(header.value().unsupported.size() == 3);
  CHECK(header.value().unsupported[0].name == "ids");
  CHECK(header.value().unsupported[1].dtype == "F3");
}

TEST_CASE("each kind of broken header has its sentence") {
  struct Case {
    const char* header;
    size_t data_bytes;
    const char* sentence;
  };
  const Case cases[] = {
      {"", 0, "the header is not a JSON object"},
      {"[]", 0, "the header is not a JSON object"},
      {"{", 0, "the header is invalid JSON at byte 1"},
      {"{\"a\":\"\xFF\"}", 0, "the header is invalid JSON"},
      {R"({"a":1})", 0, R"(tensor "a" is not described by an object)"},
      {R"({"a":{"shape":[],"data_offsets":[0,4]}})", 4, R"(tensor "a" has no dtype)"},
      {R"({"a":{"dtype":5,"shape":[],"data_offsets":[0,4]}})", 4, "has no dtype"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, R"(tensor "a" has no shape)"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
       "has an invalid dimension: -1"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4,
       "has an invalid dimension: 1.0"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
       "has an invalid dimension"},
      {R"({"a":{"dtype":"F32","shape":[]}})", 4, "has no pair of data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0]}})", 4, "no pair of data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[4,0]}})", 4, "are not a range: [4,0]"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[-4,0]}})", 4, "are not a range: [-4,0]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
       "needs 8 bytes for its shape but has 4"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
       "has a shape that is too large"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "shape that is too large"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4,
       R"(tensor "a" ends at byte 8 of the data, which has 4)"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "leaves a hole"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
       6, R"(tensor "b" overlaps another tensor)"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 7,
       "the file has 3 bytes that belong to no tensor"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, R"(the key "a" appears twice)"},
  };
  for (const auto& [header, data_bytes, sentence] : cases) {
    CAPTURE(header);
    const std::string message = error_of_safetensors(safetensors(header, data_bytes));
    CAPTURE(message);
    CHECK(message.find(sentence) != std::string::npos);
  }
}

TEST_CASE("a wrong or truncated length is refused before anything is read") {
  CHECK(error_of_safetensors("") == "the file has 0 bytes, too few for a safetensors header");
  CHECK(error_of_safetensors("1234567") ==
        "the file has 7 bytes, too few for a safetensors header");
  CHECK(error_of_safetensors(with_length(3, "{}")) ==
        "the header claims 3 bytes but the file has 2");
  CHECK(error_of_safetensors(with_length(100'000'001, "{}")) ==
        "the header claims 100000001 bytes, more than 100000000");
  CHECK(error_of_safetensors(with_length(UINT64_MAX, "{}"))
            .starts_with("the header claims 1844674407370955161"));
}

TEST_CASE("a Git LFS pointer in place of a file is named") {
  const std::string error = error_of_safetensors(
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1044992\n");
  CHECK(error.find("git lfs pull") != std::string::npos);
}

TEST_CASE("every prefix of a file is refused") {
  const std::string file =
      safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  REQUIRE(parse_safetensors(bytes_of(file)).ok());
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string prefix = file.substr(0, size);
    CHECK_FALSE(parse_safetensors(bytes_of(prefix)).ok());
  }
}
