// Whole models in every stored format: the logits match a forward pass in double over the values
// that the format's definition gives, and have the same bits on any number of ranks.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/memory_safetensors.h"
#include "support/stored_models.h"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

// How a folder stores a matrix, named after the program whose tensor names it uses.
enum class Style { kPlain, kFp8Inverse, kCompressed, kModelopt, kMlx, kColumns };

struct Storage {
  Style style = Style::kPlain;
  FormatCase format{.name = "bf16", .format = StoredFormat::kPlain, .scale_type = DType::kBF16};
};
const Storage kBf16;

struct ModelCase {
  std::string name;
  std::function<Storage(const std::string& matrix)> storage;
  std::string quantisation;  // of config.json
  // Bits per weight; 0 for plain ones, which are not rounded to 8 bits.
  double coarsest_bits = 4;
};

bool is_embedding_or_head(const std::string& matrix) {
  return matrix == "model.embed_tokens.weight" || matrix == "lm_head.weight";
}

std::string config_of(const ReferenceLlama& model, const std::string& quantisation) {
  const auto number = [](size_t value) { return std::to_string(value); };
  return R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"silu",)"
         R"("hidden_size":)" +
         number(model.hidden) + R"(,"intermediate_size":)" + number(model.ffn) +
         R"(,"num_hidden_layers":)" + number(model.layers) + R"(,"num_attention_heads":)" +
         number(model.heads) + R"(,"num_key_value_heads":)" + number(model.kv_heads) +
         R"(,"head_dim":)" + number(model.head_dim) + R"(,"vocab_size":)" +
         number(model.vocabulary) +
         R"(,"max_position_embeddings":1024,"rms_norm_eps":1e-05,"rope_theta":500000.0,)"
         R"("tie_word_embeddings":false,"rope_scaling":{"rope_type":"llama3","factor":8.0,)"
         R"("low_freq_factor":1.0,"high_freq_factor":4.0,)"
         R"("original_max_position_embeddings":64})" +
         (quantisation.empty() ? "" : "," + quantisation) + "}";
}

// Tensors of one module, as the quantising program would write them.
class ModuleWriter {
 public:
  ModuleWriter(MemorySafetensors& file, const std::string& name, const EncodedMatrix& encoded)
      : file_(file),
        stem_(name.substr(0, name.size() - std::strlen(".weight"))),
        matrix_(encoded.matrix),
        rows_(matrix_.rows),
        columns_(matrix_.columns),
        groups_(matrix_.group == 0 ? 1 : (columns_ + matrix_.group - 1) / matrix_.group) {}

  void write(Style style) {
    switch (style) {
      case Style::kPlain:
        return add(".weight", dtype_name(matrix_.scale_type), {rows_, columns_}, matrix_.codes);
      case Style::kFp8Inverse:
        add(".weight", "F8_E4M3", {rows_, columns_}, matrix_.codes);
        return add_scales(".weight_scale_inv", (rows_ + matrix_.row_group - 1) / matrix_.row_group);
      case Style::kMlx:
        return write_mlx();
      case Style::kColumns:
        return write_columns();
      case Style::kModelopt: {
        add(".weight", "U8", {rows_, columns_ / 2}, matrix_.codes);
        add_scales(".weight_scale", rows_);
        file_.tensor(stem_ + ".weight_scale_2", "F32", {}, std::vector<float>{matrix_.factor});
        return;
      }
      case Style::kCompressed:
        break;
    }
    if (matrix_.format == StoredFormat::kFp8) return write_compressed_fp8();
    if (matrix_.format == StoredFormat::kFp4) return write_compressed_fp4();
    write_compressed_integers();
  }

 private:
  void add(const std::string& suffix, std::string_view dtype, const std::vector<int64_t>& shape,
           std::span<const std::byte> bytes) {
    file_.tensor(stem_ + suffix, dtype, shape, text_of(bytes));
  }
  void add_scales(const std::string& suffix, int64_t rows) {
    const DType type = matrix_.scale_type;
    add(suffix, type == DType::kF8E8M0 ? "U8" : dtype_name(type), {rows, groups_}, matrix_.scales);
  }
  void write_mlx() {
    const auto words = static_cast<int64_t>(matrix_.row_bytes / 4);
    add(".weight", "U32", {rows_, words}, matrix_.codes);
    // MLX also stores E4M3 scales as bytes.
    const bool is_byte = dtype_bytes(matrix_.scale_type) == 1;
    add(".scales", is_byte ? "U8" : dtype_name(matrix_.scale_type), {rows_, groups_},
        matrix_.scales);
    if (matrix_.biases.empty()) return;
    add(".biases", dtype_name(matrix_.scale_type), {rows_, groups_}, matrix_.biases);
  }
  // GPTQ and AWQ.
  void write_columns() {
    const int64_t per_word = 32 / matrix_.bits;
    const bool is_awq = matrix_.format == StoredFormat::kAwq;
    add(".qweight", "I32",
        is_awq ? std::vector<int64_t>{columns_, rows_ / per_word}
               : std::vector<int64_t>{columns_ / per_word, rows_},
        matrix_.codes);
    add(".qzeros", "I32", {groups_, rows_ / per_word}, matrix_.zeros);
    add(".scales", dtype_name(matrix_.scale_type), {groups_, rows_}, matrix_.scales);
    if (is_awq) return;
    std::vector<int32_t> groups;
    for (int32_t i = 0; i < columns_; ++i) groups.push_back(i / matrix_.group);
    if (!matrix_.groups.empty()) {
      std::memcpy(groups.data(), matrix_.groups.data(), matrix_.groups.size());
    }
    file_.tensor(stem_ + ".g_idx", "I32", {columns_}, groups);
  }
  void write_compressed_fp8() {
    add(".weight", "F8_E4M3", {rows_, columns_}, matrix_.codes);
    const bool is_whole = matrix_.row_group == 0;
    add(".weight_scale", dtype_name(matrix_.scale_type),
        is_whole ? std::vector<int64_t>{1} : std::vector<int64_t>{rows_, 1}, matrix_.scales);
  }
  void write_compressed_fp4() {
    add(".weight_packed", "U8", {rows_, columns_ / 2}, matrix_.codes);
    add_scales(".weight_scale", rows_);
    if (matrix_.scale_type == DType::kF8E8M0) return;
    // The encoder computed the factor as 1 / float.
    file_.tensor(stem_ + ".weight_global_scale", "F32", {1},
                 std::vector<float>{1 / matrix_.factor});
  }
  void write_compressed_integers() {
    const int64_t per_word = 32 / matrix_.bits;
    add(".weight_packed", "I32", {rows_, columns_ / per_word}, matrix_.codes);
    add_scales(".weight_scale", rows_);
    file_.tensor(stem_ + ".weight_shape", "I64", {2}, std::vector<int64_t>{rows_, columns_});
    if (matrix_.zeros.empty()) return;
    add(".weight_zero_point", "I32", {rows_ / per_word, groups_}, matrix_.zeros);
  }

  MemorySafetensors& file_;
  std::string stem_;
  const StoredMatrix& matrix_;
  int64_t rows_, columns_, groups_;
};

// Writes the model into the folder, and returns its values as the format defines them.
ReferenceLlama write_folder(const ReferenceLlama& model, const ModelCase& format,
                            const TemporaryFolder& folder) {
  ReferenceLlama stored = model;
  MemorySafetensors file;
  for (auto& [name, dense] : stored.matrices) {
    const Storage storage = format.storage(name);
    const EncodedMatrix encoded = encode_matrix(storage.format, dense);
    DenseMatrix values = encoded.values();
    check_encoding(dense, values, storage.style == Style::kPlain ? 8 : format.coarsest_bits);
    dense = std::move(values);
    ModuleWriter(file, name, encoded).write(storage.style);
  }
  for (const auto& [name, values] : model.norms) {
    file.tensor(name, "F32", {static_cast<int64_t>(values.size())},
                std::vector<float>(values.begin(), values.end()));
  }
  folder.write("model.safetensors", file.file());
  folder.write("config.json", config_of(model, format.quantisation));
  return stored;
}

FormatCase with_bits(StoredFormat format, DType scale_type, int bits, int group) {
  return {.format = format, .scale_type = scale_type, .bits = bits, .group = group};
}

// All matrices except embedding and head, which most programs leave alone.
ModelCase inner_case(const std::string& name, Style style, const FormatCase& format,
                     const std::string& quantisation, double bits) {
  const auto storage = [style, format](const std::string& matrix) {
    return is_embedding_or_head(matrix) ? kBf16 : Storage{style, format};
  };
  return {name, storage, quantisation, bits};
}
ModelCase whole_case(const std::string& name, Style style, const FormatCase& format, double bits,
                     const std::string& quantisation = "") {
  const auto storage = [style, format](const std::string&) { return Storage{style, format}; };
  return {name, storage, quantisation, bits};
}

std::vector<ModelCase> float_cases() {
  using enum StoredFormat;
  const auto fp8 = [](DType type, int group, int row_group) {
    return FormatCase{.format = kFp8, .scale_type = type, .group = group, .row_group = row_group};
  };
  const std::string compressed = R"("quantization_config":{"quant_method":"compressed-tensors"})";
  return {inner_case(
              "FP8 in blocks", Style::kFp8Inverse, fp8(DType::kF32, 128, 128),
              R"("quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]})", 4),
          inner_case("FP8 with a scale for a matrix", Style::kCompressed, fp8(DType::kBF16, 0, 0),
                     compressed, 4),
          inner_case("FP8 with a scale for a row", Style::kCompressed, fp8(DType::kF32, 0, 1),
                     compressed, 4),
          whole_case("MXFP8", Style::kMlx, fp8(DType::kF8E8M0, 32, 1), 4,
                     R"("quantization":{"group_size":32,"bits":8,"mode":"mxfp8"})"),
          whole_case("MXFP4", Style::kMlx, with_bits(kFp4, DType::kF8E8M0, 0, 32), 3,
                     R"("quantization":{"group_size":32,"bits":4,"mode":"mxfp4"})"),
          inner_case("NVFP4 of compressed-tensors", Style::kCompressed,
                     with_bits(kFp4, DType::kF8E4M3, 0, 16), compressed, 3),
          inner_case("MXFP4 of compressed-tensors", Style::kCompressed,
                     with_bits(kFp4, DType::kF8E8M0, 0, 32), compressed, 3),
          inner_case("NVFP4 of modelopt", Style::kModelopt, with_bits(kFp4, DType::kF8E4M3, 0, 16),
                     R"("quantization_config":{"quant_method":"modelopt"})", 3)};
}

std::vector<ModelCase> integer_cases() {
  using enum StoredFormat;
  const std::string compressed =
      R"("quantization_config":{"quant_method":"compressed-tensors","format":"pack-quantized"})";
  const std::string awq =
      R"("quantization_config":{"quant_method":"awq","bits":4,"version":"gemm"})";
  const auto zeros = [](FormatCase format, int bias, bool has_act_order = false) {
    format.has_zeros = true;
    format.zero_bias = bias;
    format.has_act_order = has_act_order;
    return format;
  };
  const auto gptq_config = [](const std::string& more) {
    return R"("quantization_config":{"quant_method":"gptq")" + more + "}";
  };
  const auto gptq = [](int bits, int group) { return with_bits(kGptq, DType::kF16, bits, group); };
  const std::string version_2 = R"(,"checkpoint_format":"gptq_v2")";
  const auto packed = [](int bits) { return with_bits(kPackedInt, DType::kBF16, bits, 32); };
  return {
      inner_case("compressed-tensors INT4", Style::kCompressed, packed(4), compressed, 3.5),
      inner_case("compressed-tensors INT8", Style::kCompressed, packed(8), compressed, 7),
      inner_case("compressed-tensors INT4 with zero points", Style::kCompressed,
                 zeros(packed(4), 0), compressed, 4),
      inner_case("GPTQ 4 bit", Style::kColumns, zeros(gptq(4, 32), 1), gptq_config(""), 4),
      inner_case("GPTQ 4 bit, version 2", Style::kColumns, zeros(gptq(4, 64), 0),
                 gptq_config(version_2), 4),
      inner_case("GPTQ 4 bit with act-order", Style::kColumns, zeros(gptq(4, 64), 1, true),
                 gptq_config(R"(,"desc_act":true)"), 4),
      inner_case("GPTQ 8 bit", Style::kColumns, zeros(gptq(8, 64), 1), gptq_config(""), 7),
      inner_case("AWQ", Style::kColumns, zeros(with_bits(kAwq, DType::kF16, 4, 64), 0), awq, 4)};
}

std::vector<ModelCase> mlx_cases() {
  std::vector<ModelCase> cases;
  const auto affine = [](DType type, int bits, int group) {
    return with_bits(StoredFormat::kAffine, type, bits, group);
  };
  const DType types[] = {DType::kBF16, DType::kF16, DType::kF32};
  size_t index = 0;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      cases.push_back(
          whole_case("MLX " + std::to_string(bits) + " bits by " + std::to_string(group),
                     Style::kMlx, affine(types[index++ % 3], bits, group), std::min(bits, 7) - 0.6,
                     R"("quantization":{"group_size":)" + std::to_string(group) + R"(,"bits":)" +
                         std::to_string(bits) + "}"));
    }
  }
  ModelCase mixed;
  mixed.name = "MLX 4 bits with layers of 8 and 16";
  mixed.quantisation =
      R"("quantization":{"group_size":64,"bits":4,"model.embed_tokens":{"group_size":32,"bits":8},)"
      R"("model.layers.1.mlp.down_proj":{"group_size":128,"bits":8},"lm_head":false})";
  mixed.storage = [affine](const std::string& matrix) {
    if (matrix == "lm_head.weight") return kBf16;
    if (matrix == "model.embed_tokens.weight")
      return Storage{Style::kMlx, affine(DType::kBF16, 8, 32)};
    if (matrix == "model.layers.1.mlp.down_proj.weight") {
      return Storage{Style::kMlx, affine(DType::kBF16, 8, 128)};
    }
    return Storage{Style::kMlx, affine(DType::kBF16, 4, 64)};
  };
  mixed.coarsest_bits = 3.4;
  cases.push_back(std::move(mixed));
  return cases;
}

void check_folder_cases(const std::vector<ModelCase>& cases) {
  const Golden golden = read_golden(kLlamaFolder);
  const ReferenceLlama model = golden_model();
  for (const ModelCase& format : cases) {
    CAPTURE(format.name);
    const TemporaryFolder folder;
    const ReferenceLlama stored = write_folder(model, format, folder);
    Expected expected{golden.prompt, reference_logits(stored, golden.prompt), 0};
    if (format.coarsest_bits > 0) expected.rounding = golden.int8.rms_difference;
    check_answers(folder.path(), expected);
  }
}

}  // namespace

TEST_CASE("the forward pass in double matches the golden case") {
  const Golden golden = read_golden(kLlamaFolder);
  const Rows logits = reference_logits(golden_model(), golden.prompt);
  for (const GoldenRow& row : golden.logits) {
    for (size_t i = 0; i < row.values.size(); ++i) {
      REQUIRE(std::abs(logits[row.position][i] - row.values[i]) < 1e-4);
    }
  }
}

TEST_CASE("a folder of plain weights gives the logits of its values") {
  std::vector<ModelCase> cases;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    Storage storage = kBf16;
    storage.format.scale_type = type;
    cases.push_back(whole_case(std::string(dtype_name(type)), Style::kPlain, storage.format, 0));
  }
  check_folder_cases(cases);
}

TEST_CASE("a folder of FP8 or FP4 gives the logits of its values") {
  check_folder_cases(float_cases());
}

TEST_CASE("a folder of compressed-tensors, GPTQ or AWQ gives the logits of its values") {
  check_folder_cases(integer_cases());
}

TEST_CASE("a folder of MLX in any width gives the logits of its values") {
  check_folder_cases(mlx_cases());
}
