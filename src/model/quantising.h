// Which matrices of a model are quantised to which bits: all but the routers of experts, as mlx_lm
// does it. `--bits` (engine/) and `lockstep quantize` (quantise_model.h) agree by this.
#pragma once

#include <memory>
#include <string>

#include "model/config.h"
#include "weights/quantising_source.h"

namespace lockstep {

struct QuantisingChoice {
  int bits = 4;
  bool requantises = false;  // what is quantised already
  int threads = 1;
  int first_core = -1;  // as in ThreadTeam
};

// Routers by softmax have 8 bits. Those by sigmoid stay as they are, and so does "kv_b_proj" of
// latent attention where its parts have no whole groups: mlx_lm reads them in no other form.
std::shared_ptr<const QuantisingSource> quantising_source(
    std::shared_ptr<const WeightSource> source, const ModelConfig& config,
    const QuantisingChoice& choice);

// The module of a tensor as mlx_lm names it: without ".weight", the experts of a layer as one stack
// ("mlp.switch_mlp.gate_proj", gpt-oss "mlp.experts.gate_proj"). `stack_index` as in MatrixRequest.
std::string module_name(const ModelConfig& config, std::string name, int stack_index);

// What quantising did to what this rank has loaded.
QuantisationReport quantisation_report(const QuantisingSource& source, const ModelConfig& config);

}  // namespace lockstep
