// Draft layers in files of their own, next to a model or in a folder by themselves: the bits of the
// same layer in the model's files.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/load/open_model.h"
#include "model/quantise/quantise_model.h"
#include "support/drafted.h"
#include "support/golden.h"
#include "support/memory_safetensors.h"
#include "support/temporary_folder.h"
#include "tensor/half.h"
#include "weights/safetensors/checkpoint.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

// How a draft layer is stored by itself.
struct Layout {
  std::function<std::string(const std::string& name)> stored_name;
  bool is_mlx = false;        // experts are in stacks
  bool says_its_kind = true;  // in its header
  bool adds_one = is_mlx;     // to the norms of Qwen, which are whole then
};

// The beginning of the layer's stored names: "model.language_model.layers.4.".
std::string draft_prefix_of(const std::string& folder) {
  const auto model = open_model(folder);
  REQUIRE(model.ok());
  if (!model.value().config.architecture->draft.prefix.empty()) return "mtp.";
  const std::string layer = "layers." + std::to_string(model.value().config.layers) + ".";
  const auto whole = Checkpoint::open(folder);
  REQUIRE(whole.ok());
  for (const TensorView& tensor : whole.value()->tensors()) {
    const size_t at = tensor.name.find(layer);
    if (at != std::string::npos) return tensor.name.substr(0, at) + layer;
  }
  FAIL("no draft layer");
  return "";
}

bool is_lowered_norm(const TensorView& tensor) {
  return tensor.shape.size() == 1 && tensor.name.starts_with("mtp.") &&
         tensor.name.find("norm") != std::string::npos;
}

// Adding 1 to a BF16 number is exact in float32.
std::string plus_one(const TensorView& tensor) {
  REQUIRE(tensor.dtype == DType::kBF16);
  std::vector<float> values;
  for (size_t i = 0; i < static_cast<size_t>(tensor.shape[0]); ++i) {
    values.push_back(load_element(tensor.bytes.data(), tensor.dtype, i) + 1.0F);
  }
  return MemorySafetensors::bytes_of(values);
}

std::string bytes_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

// "a.experts.7.gate_proj.weight" -> "a.switch_mlp.gate_proj.weight"; empty: no expert's.
std::string stack_name(const std::string& name) {
  const std::string experts = ".experts.";
  const size_t at = name.find(experts);
  if (at == std::string::npos) return "";
  const size_t end = name.find('.', at + experts.size());
  if (end == std::string::npos) return "";  // a stack already
  return name.substr(0, at) + ".switch_mlp" + name.substr(end);
}

// The layer's tensors alone.
MemorySafetensors layer_of(const Checkpoint& whole, const std::string& prefix,
                           const Layout& layout) {
  MemorySafetensors file;
  if (layout.says_its_kind) file.written_for(layout.is_mlx ? "mlx" : "pt");
  struct Stack {
    std::vector<int64_t> shape;
    std::string dtype, bytes;
  };
  std::map<std::string, Stack> stacks;  // by name, of experts in the order of their numbers
  for (int expert = -1; expert < 64; ++expert) {
    for (const TensorView& tensor : whole.tensors()) {
      if (!tensor.name.starts_with(prefix)) continue;
      const bool is_expert = layout.is_mlx && !stack_name(tensor.name).empty();
      const std::string number = ".experts." + std::to_string(expert) + ".";
      if (is_expert ? tensor.name.find(number) == std::string::npos : expert >= 0) continue;
      const std::string dtype(dtype_name(tensor.dtype));
      if (is_expert) {
        Stack& stack = stacks[layout.stored_name(stack_name(tensor.name))];
        stack.dtype = dtype;
        if (stack.shape.empty()) stack.shape = {0, tensor.shape[0], tensor.shape[1]};
        ++stack.shape[0];
        stack.bytes += bytes_of(tensor);
      } else if (layout.adds_one && is_lowered_norm(tensor)) {
        file.tensor(layout.stored_name(tensor.name), "F32", tensor.shape, plus_one(tensor));
      } else {
        file.tensor(layout.stored_name(tensor.name), dtype, tensor.shape, bytes_of(tensor));
      }
    }
  }
  for (const auto& [name, stack] : stacks) file.tensor(name, stack.dtype, stack.shape, stack.bytes);
  return file;
}

// A model without its draft layer, which is `place` of the folder, or by itself in `place`.
struct SplitModel {
  TemporaryFolder work;
  std::string model, layer;

  SplitModel(const std::string& from, const Layout& layout, const std::string& place)
      : model((work.path() / "model").string()), layer((work.path() / place).string()) {
    const auto whole = Checkpoint::open(from);
    REQUIRE(whole.ok());
    const std::string prefix = draft_prefix_of(from);
    fs::create_directories(model);
    MemorySafetensors rest;
    for (const TensorView& tensor : whole.value()->tensors()) {
      if (tensor.name.starts_with(prefix)) continue;
      rest.tensor(tensor.name, dtype_name(tensor.dtype), tensor.shape, bytes_of(tensor));
    }
    REQUIRE(write_new_file(fs::path(model) / "model.safetensors", rest.file()).ok());
    fs::copy_file(fs::path(from) / "config.json", fs::path(model) / "config.json");
    fs::create_directories(fs::path(layer).parent_path());
    REQUIRE(write_new_file(layer, layer_of(*whole.value(), prefix, layout).file()).ok());
  }
};

// As mlx-vlm's converters name what is `prefix` and a module.
std::string without(const std::string& name, const std::string& prefix) {
  return name.substr(prefix.size());
}

std::string flat_name(const std::string& name, const std::string& prefix) {
  std::string module = without(name, prefix);
  const std::string head = "shared_head.norm";
  if (module.starts_with(head)) module = "shared_head_norm" + module.substr(head.size());
  return module;
}

void replace_in(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// As mlx-vlm's converters name a module of DeepSeek V4's draft layers, with MLX's own names.
std::string deepseek_name(std::string module) {
  for (const char* part : {"attn", "ffn", "head"}) {
    for (const char* table : {"fn", "base", "scale"}) {
      replace_in(
          module, std::string("hc_") + part + "_" + table,
          (part == std::string("head") ? "hc_head" : std::string(part) + "_hc") + "." + table);
    }
  }
  replace_in(module, "ffn.gate.bias", "ffn.gate.e_score_correction_bias");
  if (module.find("switch_mlp") == std::string::npos &&
      module.find("shared_experts") == std::string::npos) {
    return module;
  }
  replace_in(module, ".w1.", ".gate_proj.");
  replace_in(module, ".w2.", ".down_proj.");
  replace_in(module, ".w3.", ".up_proj.");
  return module;
}

GenerateRequest request_of(const std::string& folder) {
  return {.prompt = read_golden(folder).prompt,
          .max_tokens = 12,
          .prompt_logits = true,
          .draft_logits = true};
}

void check_same(const std::string& whole, const SplitModel& split, const std::string& draft_model) {
  const GenerateRequest request = request_of(whole);
  for (const std::vector<double>& shares : std::vector<std::vector<double>>{{1}, {2, 1}}) {
    const Setup setup{.shares = shares, .draft_layer = true};
    Setup apart = setup;
    apart.draft_model = draft_model;
    const Answer expected = run_and_count(whole, setup, {request}).answers[0];
    const Answer found = run_and_count(split.model, apart, {request}).answers[0];
    REQUIRE(expected.error == "");
    CHECK(found.error == "");
    CHECK(expected.draft_logits.size() > 20);
    CHECK(same_bits(found, expected));
    CHECK(same_bits({.logits = found.draft_logits, .tokens = {}},
                    {.logits = expected.draft_logits, .tokens = {}}));
  }
}

}  // namespace

TEST_CASE("a draft layer next to the model's files is used, whatever its file is called") {
  const std::string whole = golden_folder("mtp-qwen35-bf16");
  const Layout published = {.stored_name = [](const std::string& name) { return name; }};
  const Layout converted = {
      .stored_name = [](const std::string& name) { return without(name, "mtp."); },
      .is_mlx = true,
      .says_its_kind = false};
  const Layout named = {
      .stored_name = [](const std::string& name) { return "language_model." + name; },
      .is_mlx = true};
  for (const char* file : {"mtp.safetensors", "mtp/model.safetensors", "mtp-4bit.safetensors",
                           "model_mtp.safetensors", "model-mtp.safetensors"}) {
    CAPTURE(file);
    const SplitModel split(whole, published, std::string("model/") + file);
    check_same(whole, split, "");
  }
  for (const Layout& layout : {converted, named}) {
    const SplitModel split(whole, layout, "model/mtp.safetensors");
    check_same(whole, split, "");
    auto alone = open_model(split.model);
    REQUIRE(alone.ok());
    CHECK_FALSE(alone.value().config.has_draft_layer());
  }
}

TEST_CASE("a quantised model has the draft layer that was next to the model's files") {
  const Layout published = {.stored_name = [](const std::string& name) { return name; }};
  const auto quantised = [](const std::string& from, const fs::path& to) {
    const auto report = quantise_model({.from = from, .to = to, .bits = 4, .threads = 2});
    REQUIRE_MESSAGE(report.ok(), report.error().message);
    return report.value().draft_problem;
  };
  for (const char* name : {"mtp-qwen35-bf16", "mtp-glmdsa-bf16"}) {
    CAPTURE(name);
    const std::string whole = golden_folder(name);
    const SplitModel split(whole, published, "model/mtp.safetensors");
    const fs::path of_whole = split.work.path() / "of whole",
                   of_split = split.work.path() / "of split";
    CHECK(quantised(whole, of_whole) == "");
    CHECK(quantised(split.model, of_split) == "");
    GenerateRequest request = request_of(whole);
    const Setup setup{.draft_layer = true};
    const Answer expected = run_and_count(of_whole.string(), setup, {request}).answers[0];
    const Answer found = run_and_count(of_split.string(), setup, {request}).answers[0];
    CHECK(expected.draft_logits.size() > 20);
    CHECK(same_bits({.logits = found.draft_logits, .tokens = {}},
                    {.logits = expected.draft_logits, .tokens = {}}));
  }
  const Layout converted = {
      .stored_name = [](const std::string& name) { return without(name, "mtp."); },
      .is_mlx = true,
      .says_its_kind = false};
  const SplitModel split(golden_folder("mtp-qwen35-bf16"), converted, "model/mtp.safetensors");
  const std::string problem = quantised(split.model, split.work.path() / "without");
  CHECK(problem.ends_with("mtp.safetensors stores norms in another way than the model's files"));
}

TEST_CASE("a draft layer in a folder of its own is given as a draft model, whatever its names") {
  struct Family {
    const char* name;
    const char* before;        // the module's name
    const char* before_block;  // where the layer itself has another beginning
  };
  for (const Family& family :
       {Family{"mtp-qwen35-bf16", "", ""}, Family{"mtp-qwen3next-bf16", "", ""},
        Family{"mtp-glmdsa-bf16", "mtp.", "mtp."}, Family{"mtp-glm4moe-bf16", "mtp.", "mtp."},
        Family{"mtp-deepseekv3-bf16", "model.", "model.mtp_block."},
        Family{"qwen4exp-bf16", "", ""}, Family{"glm5next-bf16", "mtp.", "mtp."}}) {
    CAPTURE(family.name);
    const std::string whole = golden_folder(family.name), prefix = draft_prefix_of(whole);
    const Layout layout = {.stored_name =
                               [&](const std::string& name) {
                                 const std::string module = flat_name(name, prefix);
                                 const bool is_top = module.starts_with("enorm") ||
                                                     module.starts_with("hnorm") ||
                                                     module.starts_with("eh_proj") ||
                                                     module.starts_with("shared_head");
                                 return (is_top ? family.before : family.before_block) + module;
                               },
                           .is_mlx = true};
    const SplitModel split(whole, layout, "layer/model.safetensors");
    const std::string folder = fs::path(split.layer).parent_path().string();
    REQUIRE(
        write_new_file(fs::path(folder) / "config.json", "{\"model_type\": \"some_family_mtp\"}")
            .ok());
    check_same(whole, split, folder);
  }
}

TEST_CASE("a draft layer in a folder of its own may have its published names") {
  const Layout published = {.stored_name = [](const std::string& name) { return name; }};
  for (const char* name :
       {"mtp-glmdsa-bf16", "deepseekv4-bf16", "deepseekv4-dspark", "glm5next-bf16"}) {
    CAPTURE(name);
    const SplitModel split(golden_folder(name), published, "layer/model.safetensors");
    const fs::path folder = fs::path(split.layer).parent_path();
    REQUIRE(write_new_file(folder / "config.json", "{\"model_type\": \"x_mtp\"}").ok());
    check_same(golden_folder(name), split, folder.string());
  }
}

TEST_CASE("draft layers of DeepSeek V4 may have the names of converters") {
  const std::string prefix = "mtp.0.";
  const Layout one = {.stored_name =
                          [&](const std::string& name) {
                            const std::string module = deepseek_name(name.substr(prefix.size()));
                            const bool is_block =
                                module.starts_with("attn") || module.starts_with("ffn");
                            return (is_block ? "decoder." : "") + module;
                          },
                      .is_mlx = true,
                      .adds_one = false};
  // DSpark's, in its published formats: "mtp.2.x" is a stage's, but for the head that all share.
  const Layout stages = {.stored_name = [&](const std::string& name) {
    const size_t head = name.find("markov_head");
    return head == std::string::npos ? "stages." + name.substr(4) : name.substr(head);
  }};
  struct Case {
    const char* name;
    const char* type;
    const Layout& layout;
  };
  for (const Case& each : {Case{"deepseekv4-bf16", "deepseek_v4_mtp", one},
                           Case{"deepseekv4-dspark", "deepseek_v4_dspark", stages}}) {
    CAPTURE(each.name);
    const SplitModel split(golden_folder(each.name), each.layout, "layer/model.safetensors");
    const fs::path folder = fs::path(split.layer).parent_path();
    REQUIRE(write_new_file(folder / "config.json",
                           std::string("{\"model_type\": \"") + each.type + "\"}")
                .ok());
    check_same(golden_folder(each.name), split, folder.string());
  }
}

TEST_CASE("a draft layer that does not fit is refused if it was asked for, and else left out") {
  const std::string glm = golden_folder("mtp-glm4moe-bf16");
  const Layout published = {.stored_name = [](const std::string& name) { return name; }};
  const SplitModel split(glm, published, "layer/model.safetensors");
  const fs::path layer = fs::path(split.layer).parent_path();
  const auto refusal = [&](const std::string& model, const fs::path& draft) {
    const auto errors =
        try_ranks_with(links_of({}), model, {.draft_layer = true, .draft_model = draft.string()},
                       [](Engine&, int) { return Status(Ok{}); });
    return errors.front();
  };
  REQUIRE(write_new_file(layer / "config.json", "{\"model_type\": \"glm4_moe_mtp\"}").ok());
  CHECK(refusal(split.model, layer) == "");
  for (const char* model : {"mtp-qwen35-bf16", "llama3-bf16"}) {
    const std::string reason = refusal(golden_folder(model), layer);
    CHECK(reason.find("the draft layer " + layer.string() + " cannot be used: ") == 0);
  }
  // One of another size: the model is used without it.
  fs::copy_file(split.layer, fs::path(split.model) / "mtp.safetensors");
  CHECK(open_with_draft_layer(split.model).value().config.has_draft_layer());
  const SplitModel other_size(golden_folder("mtp-deepseekv3-bf16"), published,
                              "layer/model.safetensors");
  fs::copy_file(other_size.layer, fs::path(split.model) / "mtp.safetensors",
                fs::copy_options::overwrite_existing);
  const auto without_layer = open_with_draft_layer(split.model);
  REQUIRE(without_layer.ok());
  CHECK_FALSE(without_layer.value().config.has_draft_layer());
  CHECK(without_layer.value().draft_problem != "");
  // Broken: the same.
  fs::resize_file(fs::path(split.model) / "mtp.safetensors", 100);
  const auto broken = open_with_draft_layer(split.model);
  REQUIRE(broken.ok());
  CHECK(broken.value().draft_problem.find("mtp.safetensors") != std::string::npos);
}
