// Which matrices of a model are quantised, and to how many bits: all but the routers of experts, as
// in mlx_lm. Shared by `--bits` (engine/) and `lockstep quantize` (quantise_model.h).
#pragma once

#include <memory>
#include <string>

#include "model/config/config.h"
#include "weights/source/quantising_source.h"

namespace lockstep {

struct QuantisingChoice {
  int bits = 4;
  bool requantises = false;  // also quantises matrices that are quantised already
  int threads = 1;
  int first_core = -1;  // as in ThreadTeam
};

// Softmax routers get 8 bits. Sigmoid routers stay unchanged, and so does "kv_b_proj" of latent
// attention if its parts are not whole groups: mlx_lm cannot read them in any other form.
std::shared_ptr<const QuantisingSource> quantising_source(
    std::shared_ptr<const WeightSource> source, const ModelConfig& config,
    const QuantisingChoice& choice);

// The module of a tensor as mlx_lm names it: no ".weight", the experts of a layer as one stack
// ("mlp.switch_mlp.gate_proj", gpt-oss "mlp.experts.gate_proj", Gemma 4
// "experts.switch_glu.gate_proj"). `stack_index` as in MatrixRequest.
std::string module_name(const ModelConfig& config, std::string name, int stack_index);

// The effect of quantising on the weights that this rank has loaded.
QuantisationReport quantisation_report(const QuantisingSource& source, const ModelConfig& config);

}  // namespace lockstep
