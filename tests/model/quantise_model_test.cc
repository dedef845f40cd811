#include "model/quantise/quantise_model.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "json/json_file.h"
#include "model/config/config.h"
#include "model/load/open_model.h"
#include "model/load/weight_table.h"
#include "model/quantise/quantising.h"
#include "support/temporary_folder.h"
#include "tensor/stored_rows.h"
#include "weights/safetensors/checkpoint.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) {
  return fs::path(LOCKSTEP_SOURCE_DIR) / "tests/data/golden" / name;
}

Json json_file(const fs::path& path) {
  auto json = read_json_file(path);
  REQUIRE_MESSAGE(json.ok(), json.error().message);
  return std::move(json.value());
}

QuantiseReport quantised(const fs::path& from, const fs::path& to, int bits) {
  const auto report = quantise_model({.from = from, .to = to, .bits = bits, .threads = 2});
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  return report.value();
}

const TensorView& tensor(const Checkpoint& checkpoint, const std::string& name) {
  const auto view = checkpoint.tensor(name);
  REQUIRE_MESSAGE(view.ok(), name);
  return *view.value();
}

Error refusal(const QuantiseModelOptions& options) {
  const auto report = quantise_model(options);
  REQUIRE_FALSE(report.ok());
  return report.error();
}

}  // namespace

TEST_CASE("a written folder has the matrices that quantising on load gives, to the bit") {
  for (const char* name :
       {"llama3-bf16-tied", "llama3-f16-sharded", "llama-f32", "qwen2-bf16", "qwen3moe-bf16",
        "deepseekv3-bf16", "glm4moe-bf16", "minimaxm2-bf16", "gemma4-moe-bf16", "gemma4-e-bf16",
        "glmdsa-bf16", "mtp-glm4moe-bf16", "mtp-deepseekv3-bf16", "mtp-qwen3next-bf16",
        "mtp-qwen35-bf16", "glm5next-bf16", "deepseekv4-bf16", "qwen4exp-bf16"}) {
    CAPTURE(name);
    const TemporaryFolder work;
    const fs::path to = work.path() / "out";
    quantised(golden(name), to, 4);
    const auto opened = open_with_draft_layer(to.string());
    REQUIRE_MESSAGE(opened.ok(), opened.error().message);
    const ModelConfig& config = opened.value().config;
    const std::string_view of = name;
    CHECK(config.has_draft_layer() == (of.starts_with("mtp-") || of.starts_with("glm5next") ||
                                       of.starts_with("deepseekv4") || of.starts_with("qwen4exp")));
    const auto& written = opened.value().source;
    const auto original = open_weight_source(golden(name));
    REQUIRE(original.ok());
    const auto on_load = quantising_source(original.value(), config, {.bits = 4});
    for (const Weight& weight : weight_table(config)) {
      CAPTURE(weight.name);
      if (weight.is_vector) {
        const auto a = written->vector(weight.name, weight.expert, weight.rows);
        const auto b = on_load->vector(weight.name, weight.expert, weight.rows);
        REQUIRE(a.ok());
        REQUIRE(b.ok());
        CHECK(a.value().dtype == b.value().dtype);
        CHECK(std::equal(a.value().bytes.begin(), a.value().bytes.end(), b.value().bytes.begin()));
        continue;
      }
      const MatrixRequest request{.name = weight.name,
                                  .stack_index = weight.expert,
                                  .rows = weight.rows,
                                  .columns = weight.columns};
      const auto a = written->matrix(request), b = on_load->matrix(request);
      REQUIRE_MESSAGE(a.ok(), a.error().message);
      REQUIRE(b.ok());
      CHECK(a.value().format == b.value().format);
      CHECK(a.value().bits == b.value().bits);
      std::vector<float> row_a(static_cast<size_t>(weight.columns)), row_b(row_a.size());
      for (int row = 0; row < weight.rows; ++row) {
        dequantise_row(a.value(), row, 0, row_a);
        dequantise_row(b.value(), row, 0, row_b);
        REQUIRE(row_a == row_b);
      }
    }
  }
}

TEST_CASE("names, shapes and config match mlx_lm's") {
  const TemporaryFolder work;
  const fs::path to = work.path() / "out";
  const QuantiseReport report = quantised(golden("qwen3moe-bf16"), to, 4);
  const auto checkpoint = Checkpoint::open(to);
  REQUIRE(checkpoint.ok());
  const TensorView& experts =
      tensor(*checkpoint.value(), "model.layers.1.mlp.switch_mlp.gate_proj.weight");
  CHECK(experts.dtype == DType::kU32);
  CHECK(experts.shape == std::vector<int64_t>{8, 64, 64 * 4 / 32});
  const TensorView& scales =
      tensor(*checkpoint.value(), "model.layers.1.mlp.switch_mlp.gate_proj.scales");
  CHECK(scales.dtype == DType::kBF16);
  CHECK(scales.shape == std::vector<int64_t>{8, 64, 1});
  CHECK(tensor(*checkpoint.value(), "model.layers.0.mlp.gate.weight").shape ==
        std::vector<int64_t>{8, 64 * 8 / 32});
  CHECK(tensor(*checkpoint.value(), "model.norm.weight").dtype == DType::kBF16);
  CHECK_FALSE(checkpoint.value()->has("model.layers.1.mlp.experts.0.gate_proj.weight"));

  const Json config = json_file(to / "config.json");
  const Json* quantisation = find(config, "quantization");
  REQUIRE(quantisation != nullptr);
  CHECK(dump_json(*quantisation) == R"({"group_size":64,"bits":4,"mode":"affine",)"
                                    R"("model.layers.0.mlp.gate":{"group_size":64,"bits":8},)"
                                    R"("model.layers.1.mlp.gate":{"group_size":64,"bits":8}})");
  CHECK(*find(config, "quantization_config") == *quantisation);
  CHECK(find(config, "num_experts") != nullptr);
  CHECK(fs::exists(to / "model.safetensors.index.json"));
  CHECK(fs::exists(to / "golden.json"));  // a small file next to the model
  CHECK_FALSE(fs::exists(work.path() / "out.partial"));

  REQUIRE_FALSE(report.tensors.empty());
  CHECK(report.bits_per_weight() > 4.5);
  CHECK(report.bits_per_weight() < 6);  // the router, norms and headers of a tiny model
  CHECK(std::is_sorted(report.tensors.begin(), report.tensors.end(),
                       [](const QuantisedTensor& a, const QuantisedTensor& b) {
                         return a.relative_rms > b.relative_rms;
                       }));
  CHECK(report.relative_rms > 0.05);
  CHECK(report.relative_rms < 0.12);
}

TEST_CASE("sigmoid routers and latent projections without whole groups are not quantised") {
  const TemporaryFolder work;
  quantised(golden("deepseekv3-bf16"), work.path() / "out", 2);
  const auto checkpoint = Checkpoint::open(work.path() / "out");
  REQUIRE(checkpoint.ok());
  const auto kept = [&](const std::string& name) {
    return tensor(*checkpoint.value(), name + ".weight").dtype == DType::kBF16 &&
           !checkpoint.value()->has(name + ".scales");
  };
  CHECK(kept("model.layers.1.mlp.gate"));
  CHECK(kept("model.layers.1.self_attn.kv_b_proj"));
  CHECK_FALSE(kept("model.layers.1.self_attn.q_b_proj"));
  CHECK(checkpoint.value()->has("model.layers.1.mlp.gate.e_score_correction_bias"));
}

TEST_CASE("files are filled up to their limit and hold all tensors") {
  const TemporaryFolder work;
  const auto report = quantise_model({.from = golden("llama3-bf16"),
                                      .to = work.path() / "out/",
                                      .bits = 8,
                                      .file_bytes_max = 100'000});
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  const Json index = json_file(work.path() / "out/model.safetensors.index.json");
  std::set<std::string> files;
  for (const auto& member : find(index, "weight_map")->as_object()) {
    files.emplace(member.value().as_string().c_str());
  }
  CHECK(files.size() > 2);
  CHECK(files.count(fmt::format("model-00001-of-{:05}.safetensors", files.size())) == 1);
  for (const std::string& file : files) {
    CHECK(fs::file_size(work.path() / "out" / file) < 110'000);
  }
  CHECK(Checkpoint::open(work.path() / "out").ok());
}

TEST_CASE("a failure is one sentence, and no files are left") {
  const TemporaryFolder work;
  const fs::path from = golden("llama3-bf16"), to = work.path() / "out";
  CHECK(refusal({.from = from, .to = to, .bits = 7}).message.find("7 bits") != std::string::npos);
  CHECK(refusal({.from = from, .to = work.path() / "no/out"}).code == ErrorCode::kNotFound);
  CHECK(refusal({.from = work.path() / "missing", .to = to}).code == ErrorCode::kNotFound);
  CHECK(refusal({.from = from, .to = work.path()}).message.find("already exists") !=
        std::string::npos);
  std::ofstream(work.path() / "model.gguf") << "GGUF";
  CHECK(refusal({.from = work.path() / "model.gguf", .to = to}).message.find("is a GGUF file") !=
        std::string::npos);
  fs::create_directory(work.path() / "out.partial");
  CHECK(refusal({.from = from, .to = to}).message.find("out.partial") != std::string::npos);
  CHECK(fs::exists(work.path() / "out.partial"));
  fs::remove(work.path() / "out.partial");

  quantised(from, to, 4);
  const fs::path again = work.path() / "again";
  const Error error = refusal({.from = to, .to = again, .bits = 3});
  CHECK(error.code == ErrorCode::kUnsupported);
  CHECK(error.message.find("--requantise") != std::string::npos);
  CHECK_FALSE(fs::exists(again));
  CHECK_FALSE(fs::exists(work.path() / "again.partial"));
  CHECK(quantise_model({.from = to, .to = again, .bits = 3, .requantises = true}).ok());
}

TEST_CASE("a NaN weight is refused by its name, and no files are left") {
  const TemporaryFolder work;
  fs::copy(golden("llama3-bf16"), work.path() / "bad");
  const fs::path file = work.path() / "bad/model.safetensors";
  uintmax_t offset = 0;
  {
    const auto checkpoint = Checkpoint::open(work.path() / "bad");
    REQUIRE(checkpoint.ok());
    const TensorView& up = tensor(*checkpoint.value(), "model.layers.1.mlp.up_proj.weight");
    size_t behind = 0;  // bytes of the tensors after it, as data fills the file
    for (const TensorView& other : checkpoint.value()->tensors()) {
      if (other.bytes.data() >= up.bytes.data()) behind += other.bytes.size();
    }
    offset = fs::file_size(file) - behind;
  }
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.write("\xc0\x7f", 2);  // a BF16 NaN
  stream.close();
  const Error error = refusal({.from = work.path() / "bad", .to = work.path() / "out"});
  CHECK(error.message.find("model.layers.1.mlp.up_proj.weight") != std::string::npos);
  CHECK_FALSE(fs::exists(work.path() / "out"));
  CHECK_FALSE(fs::exists(work.path() / "out.partial"));
}
