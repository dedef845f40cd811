#include "gguf/gguf.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "gguf/gguf_model.h"
#include "support/gguf_writer.h"
#include "support/temporary_folder.h"
#include "support/text.h"
#include "tensor/ggml_blocks.h"

using namespace lockstep;

namespace {

using Writer = GgufWriter;

std::string error_of_gguf(const std::string& file) {
  const auto parsed = GgufFile::parse(bytes_of(file));
  return parsed.ok() ? "no error" : parsed.error().message;
}

}  // namespace

TEST_CASE("values of every type are read, integers as integers") {
  const std::string file = Writer()
                               .value("u8", Writer::kUint8, Writer::raw<uint8_t>(200))
                               .value("i8", Writer::kInt8, Writer::raw<int8_t>(-3))
                               .value("u16", Writer::kUint16, Writer::raw<uint16_t>(60'000))
                               .value("i16", Writer::kInt16, Writer::raw<int16_t>(-300))
                               .value("u32", Writer::kUint32, Writer::raw<uint32_t>(4'000'000'000))
                               .value("i32", Writer::kInt32, Writer::raw<int32_t>(-70'000))
                               .value("u64", Writer::kUint64, Writer::raw<uint64_t>(1))
                               .value("huge", Writer::kUint64, Writer::raw<uint64_t>(UINT64_MAX))
                               .value("i64", Writer::kInt64, Writer::raw<int64_t>(INT64_MIN))
                               .value("f32", Writer::kFloat32, Writer::raw<float>(0.5f))
                               .value("f64", Writer::kFloat64, Writer::raw<double>(-1e300))
                               .value("yes", Writer::kBool, Writer::raw<uint8_t>(1))
                               .string("name", "Zürich")
                               .file();
  const auto parsed = GgufFile::parse(bytes_of(file));
  REQUIRE(parsed.ok());
  const GgufFile& gguf = parsed.value();
  CHECK(gguf.integer("u8").value() == 200);
  CHECK(gguf.integer("i8").value() == -3);
  CHECK(gguf.integer("u16").value() == 60'000);
  CHECK(gguf.integer("i16").value() == -300);
  CHECK(gguf.integer("u32").value() == 4'000'000'000);
  CHECK(gguf.integer("i32").value() == -70'000);
  CHECK(gguf.integer("u64").value() == 1);
  CHECK(gguf.integer("i64").value() == INT64_MIN);
  CHECK_FALSE(gguf.integer("huge").ok());
  CHECK(gguf.number("f32").value() == 0.5);
  CHECK(gguf.number("f64").value() == -1e300);
  CHECK(gguf.number("i8").value() == -3.0);
  CHECK(gguf.boolean("yes").value() == true);
  CHECK(gguf.string("name").value() == "Zürich");
  CHECK(gguf.string("missing").value() == std::nullopt);
  CHECK(gguf.integer("name").error().message == "the GGUF value name is not an integer of 64 bits");
  CHECK(gguf.tensors().empty());
}

TEST_CASE("arrays hold strings, numbers, bytes and arrays") {
  const std::string inner = Writer::raw(Writer::kUint8) + Writer::raw<uint64_t>(2) + "ab";
  const std::string file =
      Writer()
          .strings("words", {"a", "", "bc"})
          .array("floats", Writer::kFloat32, 2, Writer::raw(0.25f) + Writer::raw(-2.0f))
          .array("ints", Writer::kInt32, 2, Writer::raw<int32_t>(-1) + Writer::raw<int32_t>(7))
          .array("bytes", Writer::kUint8, 3, "xyz")
          .array("empty", Writer::kUint64, 0, "")
          .array("nested", Writer::kArray, 2, inner + inner)
          .file();
  const auto parsed = GgufFile::parse(bytes_of(file));
  REQUIRE(parsed.ok());
  const GgufFile& gguf = parsed.value();
  CHECK(gguf.strings("words").value() == std::vector<std::string_view>{"a", "", "bc"});
  CHECK(gguf.numbers("floats").value() == std::vector<double>{0.25, -2.0});
  CHECK(gguf.integers("ints").value() == std::vector<int64_t>{-1, 7});
  CHECK(gguf.numbers("ints").value() == std::vector<double>{-1, 7});
  CHECK(gguf.bytes("bytes").value() == "xyz");
  CHECK(gguf.integers("empty").value().empty());
  CHECK(gguf.strings("missing").value().empty());
  CHECK(std::get<GgufArray>(*gguf.find("nested")).arrays[1].numbers.size() == 2);
  CHECK_FALSE(gguf.strings("ints").ok());
  CHECK_FALSE(gguf.integers("floats").ok());
  CHECK_FALSE(gguf.bytes("ints").ok());
  CHECK_FALSE(gguf.integers("words").ok());
}

TEST_CASE("tensors are found where the table says, in blocks of their type") {
  const auto q4_k = static_cast<uint32_t>(GgmlType::kQ4_K);
  const std::string file = Writer()
                               .tensor("small", {3}, 0, 0)
                               .tensor("blocks", {512, 2}, q4_k, 32)
                               .tensor("future", {7}, 77, 32 + 4 * 144)
                               .file(32 + 4 * 144 + 64);
  const auto parsed = GgufFile::parse(bytes_of(file));
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
  const GgufTensor* small = parsed.value().tensor("small");
  REQUIRE(small != nullptr);
  CHECK(small->bytes.size() == 12);
  CHECK(small->bytes.data() == bytes_of(file).data() + small->offset);
  CHECK(small->offset % 32 == 0);
  const GgufTensor* blocks = parsed.value().tensor("blocks");
  REQUIRE(blocks != nullptr);
  CHECK(blocks->bytes.size() == 4 * 144);
  CHECK(blocks->offset == small->offset + 32);
  CHECK(gguf_type_name(blocks->type_id) == "Q4_K");
  CHECK(parsed.value().tensor("future")->bytes.empty());
  CHECK(gguf_type_name(77) == "type 77");
  CHECK(parsed.value().tensor("other") == nullptr);
}

TEST_CASE("version 2 and a custom alignment are read") {
  Writer writer;
  writer.value("general.alignment", Writer::kUint32, Writer::raw<uint32_t>(8))
      .tensor("a", {2}, 0, 8);
  const std::string file = writer.file(64, 2);
  const auto parsed = GgufFile::parse(bytes_of(file));
  REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
  CHECK(parsed.value().tensors()[0].offset % 8 == 0);
}

TEST_CASE("each kind of broken file has its sentence") {
  const std::string good = Writer().string("k", "v").tensor("t", {4}, 0, 0).file(16);
  CHECK(error_of_gguf(good) == "no error");
  for (size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK(error_of_gguf(good.substr(0, size)) != "no error");
  }
  const auto tensor_error = [](const std::vector<uint64_t>& dimensions, uint32_t type,
                               uint64_t offset) {
    return error_of_gguf(Writer().tensor("t", dimensions, type, offset).file(64));
  };
  CHECK(contains(tensor_error({4}, 0, 7), "not aligned"));
  CHECK(contains(tensor_error({4}, 0, 1 << 20), "past the end"));
  CHECK(contains(tensor_error({4}, 0, UINT64_MAX - 31), "past the end"));
  CHECK(contains(tensor_error({17}, 0, 0), "needs 68 bytes"));
  CHECK(contains(tensor_error({16}, 2, 0), "a shape that Q4_0 cannot store"));
  CHECK(contains(tensor_error({UINT64_MAX, UINT64_MAX}, 0, 0), "cannot store"));
  CHECK(contains(tensor_error({1, 1, 1, 1, 1}, 0, 0), "5 dimensions"));
  CHECK(contains(error_of_gguf(Writer().tensor("t", {9}, 0, 0).tensor("u", {1}, 0, 32).file(64)),
                 "\"u\" overlaps t"));
  CHECK(contains(error_of_gguf(Writer().tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).file(64)),
                 "appears twice"));
  CHECK(
      contains(error_of_gguf(Writer().string("k", "").string("k", "").file()), "k appears twice"));
  CHECK(contains(error_of_gguf(Writer().value("k", 13, "").file()), "type 13 does not exist"));
  CHECK(error_of_gguf(Writer().string("a\nb", "").file()) ==
        "GGUF value 0 has an invalid key of 3 bytes");
  CHECK(contains(error_of_gguf(Writer().array("k", Writer::kString, 1 << 20, "").file()),
                 "claims 1048576 elements"));
  CHECK(contains(error_of_gguf(Writer().array("k", Writer::kUint64, UINT64_MAX / 4, "").file()),
                 "ends at byte"));
  CHECK(contains(
      error_of_gguf(
          Writer().value("general.alignment", Writer::kUint32, Writer::raw<uint32_t>(0)).file()),
      "general.alignment is 0"));
  CHECK(contains(error_of_gguf(Writer().file(0, 1)), "GGUF version 1 is not supported"));
  CHECK(contains(error_of_gguf(Writer().file(0, 0x03000000)), "big-endian"));
  CHECK(contains(error_of_gguf("GGML"), "does not begin with"));
  CHECK(contains(error_of_gguf("GGUF" + Writer::raw<uint32_t>(3) + Writer::raw(UINT64_MAX) +
                               Writer::raw<uint64_t>(0)),
                 "more than any model has"));
}

TEST_CASE("nested arrays have a limit") {
  std::string bytes;
  for (int depth = 0; depth < 100; ++depth) {
    bytes += Writer::raw(Writer::kArray) + Writer::raw<uint64_t>(1);
  }
  CHECK(contains(error_of_gguf(Writer().value("deep", Writer::kArray, bytes).file(4096)),
                 "deeper than 4"));
}

TEST_CASE("the kind of a file is found without waiting for a pipe's writer") {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe", file = folder.path() / "file";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_FALSE(is_gguf_path(pipe));
  std::ofstream(file, std::ios::binary) << Writer().string("k", "v").file();
  CHECK(is_gguf_path(file));
  CHECK_FALSE(is_gguf_path(folder.path() / "nothing"));
}
