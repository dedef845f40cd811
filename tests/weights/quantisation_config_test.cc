#include "weights/quantised/quantisation_config.h"

#include <doctest/doctest.h>

#include <string>

using namespace lockstep;

namespace {

Result<QuantisationConfig> read(const std::string& config) {
  const auto json = parse_json(config);
  REQUIRE(json.ok());
  return read_quantisation_config(json.value());
}

}  // namespace

TEST_CASE("a config without a quantisation, or with MLX's, names no method") {
  for (const char* config : {"{}", "[]", R"({"quantization_config":null})",
                             R"({"quantization":{"bits":4},"quantization_config":{"bits":4}})"}) {
    CAPTURE(config);
    const auto read_config = read(config);
    REQUIRE(read_config.ok());
    CHECK(read_config.value().method.empty());
    REQUIRE(read_config.value().fp8_blocks.size() == 1);
    CHECK(read_config.value().fp8_blocks[0].rows == 128);
    CHECK_FALSE(read_config.value().has_gptq_v2_zero_points);
  }
}

TEST_CASE("FP8 blocks are read from both fp8 and compressed-tensors configs") {
  const auto fp8 = read(R"({"text_config":{"quantization_config":)"
                        R"({"quant_method":"fp8","weight_block_size":[64,32]}}})");
  REQUIRE(fp8.ok());
  CHECK(fp8.value().method == "fp8");
  CHECK(fp8.value().fp8_blocks[0].rows == 64);
  CHECK(fp8.value().fp8_blocks[0].columns == 32);
  const auto compressed = read(
      R"({"quantization_config":{"quant_method":"compressed-tensors","config_groups":)"
      R"({"a":{"weights":{"block_structure":[1,2]}},"b":{"weights":{"block_structure":null}}}}})");
  REQUIRE(compressed.ok());
  REQUIRE(compressed.value().fp8_blocks.size() == 1);
  CHECK(compressed.value().fp8_blocks[0].columns == 2);
  for (const char* block : {"[0,1]", "[1]", "[1,2,3]", "\"128\"", "[1.5,2]", "[1,99999999999]"}) {
    CAPTURE(block);
    const auto broken =
        read(std::string(R"({"quantization_config":{"weight_block_size":)") + block + "}}");
    REQUIRE_FALSE(broken.ok());
    CHECK(broken.error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("unknown methods, formats and versions are refused by name") {
  const auto error_with = [](const std::string& quantisation) {
    const auto config = read(R"({"quantization_config":)" + quantisation + "}");
    REQUIRE_FALSE(config.ok());
    return config.error().message;
  };
  for (const char* method : {"bitsandbytes", "hqq", "aqlm", "exl2", "fbgemm_fp8", "quanto", "x"}) {
    CHECK(error_with(std::string(R"({"quant_method":")") + method + "\"}")
              .starts_with(std::string("the quantisation \"") + method +
                           "\" is unknown here; supported are: MLX"));
  }
  CHECK(error_with(R"({"quant_method":"awq","version":"gemv"})")
            .starts_with("the quantisation \"awq gemv\" is unknown here"));
  CHECK(error_with(R"({"quant_method":"compressed-tensors","format":"marlin-24"})")
            .starts_with("the quantisation \"marlin-24\" is unknown here"));
  CHECK(error_with(R"({"quant_method":7})") ==
        "quantization_config: \"quant_method\" must be a string");
}

TEST_CASE("the second format of GPTQ checkpoints is recognised") {
  const auto config =
      read(R"({"quantization_config":{"quant_method":"gptq","checkpoint_format":"gptq_v2"}})");
  REQUIRE(config.ok());
  CHECK(config.value().has_gptq_v2_zero_points);
}
