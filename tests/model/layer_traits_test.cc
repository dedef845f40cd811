#include "model/config/layer_traits.h"

#include <doctest/doctest.h>

#include <bitset>
#include <string>
#include <vector>

#include "model/load/shape_model.h"
#include "model/load/weight_table.h"

using namespace lockstep;

namespace {

ModelConfig shape_config(const std::string& name) {
  const auto config = read_shape_config(name);
  REQUIRE(config.ok());
  return config.value();
}

}  // namespace

TEST_CASE("a layer has what its architecture's table lists and its checkpoint has") {
  const LayerTraits llama = shape_config("llama-3.3-70b").layer(0);
  CHECK(llama.has(Role::kQuery));
  for (const Role role : {Role::kQueryBias, Role::kQueryNorm, Role::kSinks, Role::kAttentionOutBias,
                          Role::kRouter, Role::kSharedDown, Role::kKvDown}) {
    CHECK_FALSE(llama.has(role));
  }
  CHECK(shape_config("qwen3-0.6b").layer(0).has(Role::kQueryNorm));
  const LayerTraits oss = shape_config("gpt-oss-20b").layer(0);
  for (const Role role : {Role::kQueryBias, Role::kSinks, Role::kAttentionOutBias,
                          Role::kRouterBias, Role::kExpertGateBias, Role::kExpertDownBias}) {
    CHECK(oss.has(role));
  }
  CHECK(oss.gating == Gating::kClampedSwiglu);
  CHECK(oss.scores == RouterForm::kSoftmax);
}

TEST_CASE("layers of one model differ in their experts and windows") {
  const ModelConfig deepseek = shape_config("deepseek-v3.1");
  CHECK_FALSE(deepseek.layer(2).has_experts);
  CHECK_FALSE(deepseek.layer(2).has(Role::kSharedDown));
  CHECK(deepseek.layer(3).has_experts);
  CHECK(deepseek.layer(3).has(Role::kSharedDown));
  CHECK(deepseek.layer(3).scores == RouterForm::kSigmoid);
  const ModelConfig oss = shape_config("gpt-oss-20b");
  CHECK(oss.layer(0).window == 128);
  CHECK(oss.layer(1).window == 0);
}

TEST_CASE("the state of a layer is its heads of keys and values, or one latent for all heads") {
  const ModelConfig llama = shape_config("llama-3.3-70b");
  const StateTraits heads = llama.layer(0).state;
  CHECK(heads.heads == 8);
  CHECK_FALSE(heads.is_shared);
  CHECK(heads.key_dim == 128);
  CHECK(heads.value_dim == 128);
  const StateTraits latent = shape_config("deepseek-v3.1").layer(0).state;
  CHECK(latent.heads == 1);
  CHECK(latent.is_shared);
  CHECK(latent.key_dim == 576);
  CHECK(latent.value_dim == 512);
}

TEST_CASE("a layer has exactly the roles that the weight table lists for it") {
  for (const char* name : {"llama-3.3-70b", "qwen3-0.6b", "gpt-oss-20b", "deepseek-v3.1"}) {
    CAPTURE(std::string(name));
    const ModelConfig config = shape_config(name);
    std::vector<std::bitset<kRoleCount>> listed(static_cast<size_t>(config.layers));
    for (const Weight& weight : weight_table(config)) {
      if (weight.layer < 0) continue;
      listed[static_cast<size_t>(weight.layer)].set(static_cast<size_t>(weight.role));
    }
    for (int layer = 0; layer < config.layers; ++layer) {
      CHECK(config.layer(layer).weights == listed[static_cast<size_t>(layer)]);
    }
  }
}
