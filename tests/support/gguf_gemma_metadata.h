// The values of Gemma 4 as llama.cpp's converter writes them: conversion/gemma.py, class
// Gemma4Model of https://github.com/ggml-org/llama.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/json.h"
#include "support/gguf_writer.h"

namespace lockstep::testing {

class GgufGemmaMetadata {
 public:
  GgufGemmaMetadata(GgufWriter& file, const Json& config) : file_(file), config_(config) {}

  void write() {
    const JsonArray& types = find(config_, "layer_types")->get_array();
    std::string marks;
    for (const Json& type : types) {
      windowed_.push_back(type.get_string() == "sliding_attention");
      marks += static_cast<char>(windowed_.back());
    }
    file_.array(key("attention.sliding_window_pattern"), GgufWriter::kBool, types.size(), marks);
    write_heads();
    write_widths();
    const auto dims = static_cast<size_t>(number("global_head_dim"));
    file_.integer(key("rope.dimension_count"), static_cast<uint32_t>(dims));
    const Json& angles = *find(config_, "rope_parameters");
    const Json& full = *find(angles, "full_attention");
    file_.number(key("rope.freq_base"), real(full, "rope_theta"));
    file_.number(key("rope.freq_base_swa"), real(*find(angles, "sliding_attention"), "rope_theta"));
    file_.integer(key("attention.sliding_window"), number("sliding_window"));
    file_.number(key("final_logit_softcapping"), real(config_, "final_logit_softcapping"));
    std::vector<float> divisors(dims / 2, 1e30f);
    const auto part = find(full, "partial_rotary_factor")->to_number<double>();
    const auto turning = static_cast<size_t>(static_cast<double>(dims) * part / 2);
    for (size_t pair = 0; pair < turning; ++pair) divisors[pair] = 1;
    file_.floats("rope_freqs.weight", {dims / 2}, divisors);
  }

 private:
  static std::string key(const char* name) { return std::string("gemma4.") + name; }
  uint32_t number(const char* name) const { return find(config_, name)->to_number<uint32_t>(); }
  static float real(const Json& object, const char* name) {
    return static_cast<float>(find(object, name)->to_number<double>());
  }

  void write_heads() {
    for (const char* name : {"key", "value"}) {
      const std::string length = std::string("attention.") + name + "_length";
      file_.integer(key(length.c_str()), number("global_head_dim"));
      file_.integer(key((length + "_swa").c_str()), number("head_dim"));
    }
    const Json* full = find(config_, "num_global_key_value_heads");
    if (full == nullptr || full->is_null()) {
      file_.integer(key("attention.head_count_kv"), number("num_key_value_heads"));
      return;
    }
    std::string heads;
    for (const bool is_windowed : windowed_) {
      heads += GgufWriter::raw(is_windowed ? number("num_key_value_heads")
                                           : number("num_global_key_value_heads"));
    }
    file_.array(key("attention.head_count_kv"), GgufWriter::kUint32, windowed_.size(), heads);
  }

  void write_widths() {
    const uint32_t width = number("intermediate_size");
    if (!find(config_, "use_double_wide_mlp")->as_bool()) {
      file_.integer(key("feed_forward_length"), width);
      return;
    }
    const size_t first = windowed_.size() - number("num_kv_shared_layers");
    std::string widths;
    for (size_t layer = 0; layer < windowed_.size(); ++layer) {
      widths += GgufWriter::raw(layer < first ? width : 2 * width);
    }
    file_.array(key("feed_forward_length"), GgufWriter::kUint32, windowed_.size(), widths);
  }

  GgufWriter& file_;
  const Json& config_;
  std::vector<bool> windowed_;
};

}  // namespace lockstep::testing
