#include "model/load/open_model.h"

#include <doctest/doctest.h>

#include "collective/group/group.h"
#include "kernels/isa.h"
#include "model/forward/model.h"
#include "support/golden.h"
#include "support/model_copy.h"

using namespace lockstep;

TEST_CASE("files with more layers than the config says are refused") {
  for (const char* name : {"llama3-bf16", "llama3-q4-g64", "qwen3moe-bf16", "deepseekv3-fp8"}) {
    CAPTURE(name);
    ModelCopy copy(golden_folder(name));
    CHECK(open_model(copy.path()).ok());
    const Json config = json_of_file(copy.path() + "/config.json");
    const Json* layers = find(config, "num_hidden_layers");
    REQUIRE(layers != nullptr);
    const int64_t own = layers->as_int64();
    copy.change_config("num_hidden_layers", own - 1);
    const auto opened = open_model(copy.path());
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == ErrorCode::kCorrupt);
    CHECK(opened.error().message.find("but the files hold " + std::to_string(own) +
                                      " (up to model.layers." + std::to_string(own - 1) + ".*)") !=
          std::string::npos);
  }
}

TEST_CASE("layers that predict further tokens follow the others and are left out") {
  ModelCopy counted(golden_folder("llama3-bf16"));
  counted.change_config("num_hidden_layers", 1);
  counted.change_config("num_nextn_predict_layers", 1);
  CHECK(open_model(counted.path()).ok());
  counted.change_config("num_nextn_predict_layers", -1);
  CHECK_FALSE(open_model(counted.path()).ok());
  // As in conversions that drop these layers' entries from the config.
  ModelCopy named(golden_folder("llama3-bf16"));
  named.change_config("num_hidden_layers", 1);
  named.rename_tensor("model.layers.1.mlp.up_proj.weight", "model.layers.1.eh_proj.weight");
  CHECK(open_model(named.path()).ok());
}

TEST_CASE("a draft layer is used if it is whole, and else left out with the reason") {
  const auto opened = [](const std::string& path) {
    auto model = open_with_draft_layer(path);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    return model.value();
  };
  CHECK(opened(golden_folder("mtp-glm4moe-bf16")).config.has_draft_layer());
  CHECK(opened(golden_folder("mtp-glm4moe-bf16")).draft_problem.empty());
  const OpenedModel without = opened(golden_folder("llama3-bf16"));
  CHECK_FALSE(without.config.has_draft_layer());
  CHECK(without.draft_problem.empty());
  const std::string layer =
      "model.layers." + std::to_string(opened(golden_folder("mtp-glm4moe-bf16")).config.layers);
  for (const char* name : {".mlp.experts.1.up_proj.weight", ".enorm.weight",
                           ".self_attn.o_proj.weight", ".shared_head.norm.weight"}) {
    CAPTURE(name);
    ModelCopy copy(golden_folder("mtp-glm4moe-bf16"));
    copy.rename_tensor(layer + name, layer + ".x.weight");
    const OpenedModel model = opened(copy.path());
    CHECK_FALSE(model.config.has_draft_layer());
    CHECK(model.draft_problem.find(name) != std::string::npos);
  }
  ModelCopy copy(golden_folder("mtp-glm4moe-bf16"));
  copy.rename_tensor(layer + ".eh_proj.weight", layer + ".x.weight");
  CHECK(opened(copy.path()).draft_problem.empty());  // then it has none
}

TEST_CASE("draft layers that guess a block are used if all of them are whole") {
  const std::string name = golden_folder("deepseekv4-dspark");
  const auto opened = open_with_draft_layer(name);
  REQUIRE(opened.ok());
  CHECK(opened.value().config.guesses_blocks());
  for (const char* missing : {"mtp.0.main_norm.weight", "mtp.1.attn.wkv.weight",
                              "mtp.2.markov_head.markov_w2.weight", "mtp.2.hc_head_fn"}) {
    CAPTURE(missing);
    ModelCopy copy(name);
    copy.rename_tensor(missing, "x");
    const auto model = open_with_draft_layer(copy.path());
    REQUIRE(model.ok());
    CHECK_FALSE(model.value().config.guesses_blocks());
    CHECK(model.value().draft_problem.find(missing) != std::string::npos);
  }
}

TEST_CASE("a draft layer with a name of its own is not one of the layers that are counted") {
  ModelCopy copy(golden_folder("mtp-qwen3next-bf16"));
  CHECK(open_model(copy.path()).ok());
  const int layers = open_model(copy.path()).value().config.layers;
  copy.change_config("mtp_num_hidden_layers", 1);
  CHECK(open_model(copy.path()).ok());
  copy.change_config("num_hidden_layers", layers - 1);
  copy.change_config("layer_types", Json());
  CHECK_FALSE(open_model(copy.path()).ok());
}

TEST_CASE("a missing latent attention tensor is reported under its usual name") {
  ModelCopy copy(golden_folder("deepseekv3-bf16"));
  copy.rename_tensor("model.layers.1.self_attn.kv_b_proj.weight",
                     "model.layers.1.self_attn.kv_x_proj.weight");
  const auto opened = open_model(copy.path());
  REQUIRE(opened.ok());
  std::vector<std::unique_ptr<Link>> links(1);
  Group group({.links = std::move(links)});
  auto device = open_device({.kind = "cpu", .kernels = available_kernels().back()});
  REQUIRE(device.ok());
  const auto model = Model::load({.config = opened.value().config,
                                  .source = opened.value().source,
                                  .shares = {1},
                                  .tokens_max = 8,
                                  .pages = 2,
                                  .page_list_entries_max = 2},
                                 group, *device.value());
  REQUIRE_FALSE(model.ok());
  CHECK(model.error().message ==
        "the checkpoint has no tensor model.layers.1.self_attn.kv_b_proj.weight");
}
