#include "weights/quantised/mlx_quantisation.h"

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

Result<MlxQuantisation> read_mlx(const std::string& text) {
  const auto json = parse_json(text);
  REQUIRE(json.ok());
  return MlxQuantisation::read(json.value());
}

StoredMatrix affine(int bits, int group) {
  StoredMatrix matrix;
  matrix.format = StoredFormat::kAffine;
  matrix.bits = bits;
  matrix.group = group;
  return matrix;
}

StoredMatrix fp4(int group, DType scales) {
  StoredMatrix matrix = affine(4, group);
  matrix.format = StoredFormat::kFp4;
  matrix.scale_type = scales;
  return matrix;
}

std::string error_of_mlx(const std::string& text) {
  const auto config = read_mlx(text);
  REQUIRE_FALSE(config.ok());
  return config.error().message;
}

}  // namespace

TEST_CASE("unsupported bits, groups and modes are named with the supported ones") {
  const std::string supported =
      "; supported are affine with 2, 3, 4, 5, 6 or 8 bits and groups of a multiple of 8, mxfp4 (4 "
      "bits, groups of 32), nvfp4 (4, 16) and mxfp8 (8, 32)";
  const std::string all = "config.json's \"quantization\" says ";
  CHECK(error_of_mlx(R"({"bits":7,"group_size":64})") == all + "\"bits\": 7" + supported);
  CHECK(error_of_mlx(R"({"bits":-4})") == all + "\"bits\": -4" + supported);
  CHECK(error_of_mlx(R"({"bits":4,"group_size":0})") == all + "\"group_size\": 0" + supported);
  CHECK(error_of_mlx(R"({"bits":4,"group_size":20})") == all + "\"group_size\": 20" + supported);
  CHECK(error_of_mlx(R"({"bits":4,"mode":"foo"})") == all + "\"mode\": \"foo\"" + supported);
  CHECK(error_of_mlx(R"({"bits":8,"group_size":32,"mode":"mxfp4"})") ==
        all + "\"mode\": \"mxfp4\" with 8 bits and groups of 32" + supported);
  CHECK(error_of_mlx(R"({"bits":4,"lm_head":{"bits":9}})") ==
        "config.json's \"quantization\" of lm_head says \"bits\": 9" + supported);
  for (const char* wrong : {R"({"bits":"4"})", R"({"group_size":1.5})", R"({"mode":4})"}) {
    CAPTURE(wrong);
    const auto config = read_mlx(wrong);
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().code == ErrorCode::kCorrupt);
  }
  CHECK(error_of_mlx("{\"mode\":\"" + std::string(100'000, 'x') + "\"}").size() < 400);
}

TEST_CASE("a module must be quantised as the config says, if it does") {
  const auto config = read_mlx(R"({"bits":4,"group_size":64,"mode":"affine","model.a":{"bits":8},)"
                               R"("language_model.model.b":{"bits":6,"group_size":32},"c":false,)"
                               R"("d":true})");
  REQUIRE(config.ok());
  const MlxQuantisation& mlx = config.value();
  CHECK(mlx.check("lm_head", affine(4, 64)).ok());
  CHECK(mlx.check("d", affine(4, 64)).ok());
  CHECK(mlx.check("model.a", affine(8, 128)).ok());  // its group is not given
  for (const char* name : {"model.b", "b", "language_model.model.b"}) {
    CAPTURE(name);
    CHECK(mlx.check(name, affine(6, 32)).ok());
    CHECK_FALSE(mlx.check(name, affine(4, 64)).ok());
  }
  const Status status = mlx.check("lm_head", affine(8, 32));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::kCorrupt);
  CHECK(status.error().message ==
        "config.json says that lm_head is quantised to 4 bits in groups of 64 (affine), but its "
        "tensors have 8 bits in groups of 32 (affine): they do not belong together");
  CHECK_FALSE(mlx.check("lm_head", fp4(64, DType::kF8E8M0)).ok());
}

TEST_CASE("float modes are distinguished, and an empty entry matches everything") {
  const auto mxfp4 = read_mlx(R"({"mode":"mxfp4","bits":4,"group_size":32})");
  REQUIRE(mxfp4.ok());
  CHECK(mxfp4.value().check("x", fp4(32, DType::kF8E8M0)).ok());
  CHECK_FALSE(mxfp4.value().check("x", affine(4, 32)).ok());
  const auto nvfp4 = read_mlx(R"({"mode":"nvfp4"})");
  REQUIRE(nvfp4.ok());
  CHECK(nvfp4.value().check("x", fp4(16, DType::kF8E4M3)).ok());
  CHECK_FALSE(nvfp4.value().check("x", fp4(32, DType::kF8E8M0)).ok());
  for (const char* nothing : {"{}", "[]", R"({"quant_algo":"x","inner":{"y":1}})"}) {
    const auto config = read_mlx(nothing);
    REQUIRE(config.ok());
    CHECK(config.value().check("x", affine(3, 128)).ok());
  }
}
