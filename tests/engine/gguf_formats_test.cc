// Whole GGUF models in every tensor type: the logits follow from the type's definition, with the
// same bits on any number of ranks. The files are laid out as llama.cpp's converter does it
// (conversion/llama.py).
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/gguf_writer.h"
#include "support/stored_models.h"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

// The type of a tensor, by its name in the file.
using TypeChoice = std::function<uint32_t(const std::string& name)>;

std::string gguf_name(std::string name) {
  const std::pair<const char*, const char*> kParts[] = {
      {"model.layers.", "blk."},        {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},    {"lm_head", "output"},
      {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},   {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  for (const auto& [from, to] : kParts) {
    if (const size_t at = name.find(from); at != std::string::npos) {
      name.replace(at, std::strlen(from), to);
    }
  }
  return name;
}

// The index in the file of row `row`: the two halves of a head are interleaved.
size_t interleaved(size_t row, size_t head_dim) {
  const size_t in_head = row % head_dim, half = head_dim / 2;
  return row - in_head + in_head % half * 2 + in_head / half;
}
DenseMatrix interleave(const DenseMatrix& matrix, size_t head_dim, bool back) {
  DenseMatrix result = matrix;
  for (size_t row = 0; row < matrix.rows; ++row) {
    const size_t stored = interleaved(row, head_dim);
    for (size_t i = 0; i < matrix.columns; ++i) {
      result.at(back ? row : stored, i) = matrix.at(back ? stored : row, i);
    }
  }
  return result;
}

void write_metadata(const ReferenceLlama& model, GgufWriter& file) {
  const auto number = [](size_t value) { return static_cast<uint32_t>(value); };
  file.string("general.architecture", "llama");
  file.integer("llama.block_count", number(model.layers));
  file.integer("llama.context_length", 1024);
  file.integer("llama.embedding_length", number(model.hidden));
  file.integer("llama.feed_forward_length", number(model.ffn));
  file.integer("llama.attention.head_count", number(model.heads));
  file.integer("llama.attention.head_count_kv", number(model.kv_heads));
  file.integer("llama.attention.key_length", number(model.head_dim));
  file.integer("llama.attention.value_length", number(model.head_dim));
  file.integer("llama.rope.dimension_count", number(model.head_dim));
  file.number("llama.attention.layer_norm_rms_epsilon", static_cast<float>(model.epsilon));
  file.number("llama.rope.freq_base", static_cast<float>(model.theta));
}

// One part of a split model; the first one also has the metadata.
void write_split(GgufWriter& file, uint16_t part, uint16_t parts, size_t tensors) {
  file.value("split.no", GgufWriter::kUint16, GgufWriter::raw(part));
  file.value("split.count", GgufWriter::kUint16, GgufWriter::raw(parts));
  file.value("split.tensors.count", GgufWriter::kInt32,
             GgufWriter::raw(static_cast<int32_t>(tensors)));
}

struct GgufFiles {
  std::vector<GgufWriter> parts;
  ReferenceLlama stored;  // the values in the files by definition
};

GgufFiles write_model(const ReferenceLlama& model, const TypeChoice& type, double bits,
                      size_t parts) {
  GgufFiles files{std::vector<GgufWriter>(parts), model};
  write_metadata(model, files.parts[0]);
  for (size_t part = 0; parts > 1 && part < parts; ++part) {
    write_split(files.parts[part], static_cast<uint16_t>(part), static_cast<uint16_t>(parts),
                model.matrices.size() + model.norms.size() + 1);
  }
  std::vector<float> divisors;
  for (size_t i = 0; i < model.head_dim / 2; ++i) {
    divisors.push_back(static_cast<float>(rope_divisor(model, i)));
  }
  files.parts[0].floats("rope_freqs.weight", {divisors.size()}, divisors);
  size_t next = 0;
  for (auto& [name, dense] : files.stored.matrices) {
    const std::string stored_name = gguf_name(name);
    const bool is_rotated = stored_name.find("attn_q.") != std::string::npos ||
                            stored_name.find("attn_k.") != std::string::npos;
    const DenseMatrix rows = is_rotated ? interleave(dense, model.head_dim, false) : dense;
    const FormatCase format{.format = StoredFormat::kGguf, .gguf_type = type(stored_name)};
    const EncodedMatrix encoded = encode_matrix(format, rows);
    const DenseMatrix values = encoded.values();
    check_encoding(rows, values, bits);
    dense = is_rotated ? interleave(values, model.head_dim, true) : values;
    files.parts[next++ % parts].tensor_with(stored_name, {dense.columns, dense.rows},
                                            format.gguf_type, text_of(encoded.codes));
  }
  for (const auto& [name, values] : model.norms) {
    files.parts[next++ % parts].floats(gguf_name(name), {values.size()},
                                       std::vector<float>(values.begin(), values.end()));
  }
  return files;
}

// A model, the prompt, and the golden case's relative error of 8-bit activations.
struct RoundedModel {
  ReferenceLlama model = golden_model();
  Golden golden = read_golden(kLlamaFolder);
  double rounding = golden.int8.rms_difference / spread(reference_logits(model, golden.prompt));
};

void check_gguf(const RoundedModel& subject, const ReferenceLlama& model, const TypeChoice& type,
                double bits, size_t parts = 1) {
  const TemporaryFolder folder;
  const GgufFiles files = write_model(model, type, bits, parts);
  std::string path;
  for (size_t part = parts; part-- > 0;) {
    const std::string name = parts == 1 ? "model.gguf"
                                        : "model-0000" + std::to_string(part + 1) + "-of-0000" +
                                              std::to_string(parts) + ".gguf";
    path = folder.write(name, files.parts[part].file());
  }
  Expected expected{subject.golden.prompt, reference_logits(files.stored, subject.golden.prompt),
                    0};
  if (bits < 8) expected.rounding = subject.rounding * spread(expected.logits);
  check_answers(path, expected);
}

TypeChoice always(uint32_t type) {
  return [type](const std::string&) { return type; };
}

struct NamedType {
  const char* name;
  uint32_t type;
  double bits;  // least precision after rounding to it; 8: nothing is rounded
};

}  // namespace

TEST_CASE("a GGUF file of plain tensors or blocks of 32 gives the logits of its values") {
  const RoundedModel subject;
  const NamedType types[] = {
      {"F32", 0, 8},    {"F16", 1, 8},    {"BF16", 30, 8}, {"Q4_0", 2, 3.4},  {"Q4_1", 3, 3.4},
      {"Q5_0", 6, 4.4}, {"Q5_1", 7, 4.4}, {"Q8_0", 8, 7},  {"IQ4_NL", 20, 3}, {"MXFP4", 39, 3}};
  for (const NamedType& type : types) {
    CAPTURE(type.name);
    check_gguf(subject, subject.model, always(type.type), type.bits);
  }
}

TEST_CASE("a GGUF file of blocks of 256 gives the logits of its values") {
  const RoundedModel subject;
  const ReferenceLlama model = wide_model();
  const NamedType types[] = {{"Q2_K", 10, 1.4}, {"Q3_K", 11, 2.4}, {"Q4_K", 12, 3.4},
                             {"Q5_K", 13, 4.4}, {"Q6_K", 14, 5.4}, {"IQ4_XS", 23, 3}};
  for (const NamedType& type : types) {
    CAPTURE(type.name);
    check_gguf(subject, model, always(type.type), type.bits);
  }
}

TEST_CASE("a GGUF file of several types, as Q4_K_M is, gives the logits of its values") {
  const TypeChoice mixed = [](const std::string& name) -> uint32_t {
    const bool is_finer = name.find("attn_v") != std::string::npos ||
                          name.find("blk.1.ffn_down") != std::string::npos ||
                          name == "output.weight";
    return is_finer ? 14 : name == "token_embd.weight" ? 8 : 12;
  };
  check_gguf(RoundedModel(), wide_model(), mixed, 3.4);
}

TEST_CASE("a GGUF model in two files gives the logits of its values") {
  const RoundedModel subject;
  check_gguf(subject, subject.model, always(8), 7, 2);
}
