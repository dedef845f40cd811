// How often a decode step wakes the team of threads: each such section ends with a wait for all
// pieces, whatever the layer's number of matrices and experts.
#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <utility>

#include "device/cpu/cpu_device.h"
#include "kernels/isa.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "support/golden.h"
#include "support/temporary_folder.h"
#include "transport/form/local_links.h"

using namespace lockstep;

namespace {

constexpr int kLayers = 3;

// A golden case's shape, large enough that threads are worth waking.
std::string wide_model(const TemporaryFolder& folder, const std::string& config_of) {
  Json json = json_of_file(golden_folder(config_of) + "/config.json");
  const JsonObject sizes = {
      {"hidden_size", 512},           {"intermediate_size", 1024},     {"head_dim", 64},
      {"num_hidden_layers", kLayers}, {"moe_intermediate_size", 1280}, {"num_experts", 16},
      {"num_experts_per_tok", 8},     {"first_k_dense_replace", 0},    {"n_routed_experts", 16}};
  for (const auto& size : sizes) json.as_object()[size.key()] = size.value();
  folder.write("config.json", dump_json(json));
  return "shape:" + folder.path().string() + "?format=mlx4";
}

Batch tokens_at(int begin, int end) {
  Batch batch;
  batch.tokens.assign(static_cast<size_t>(end - begin), 7);
  batch.positions.resize(batch.tokens.size());
  std::iota(batch.positions.begin(), batch.positions.end(), begin);
  batch.list_offsets.assign(batch.tokens.size(), 0);
  batch.page_lists = {0, 1, 2, 3};
  batch.outputs = {end - begin - 1};
  return batch;
}

// The sections of a token's pass after a prompt, without the logits' one.
uint64_t sections_of_a_token(const std::string& config_of, int threads) {
  constexpr int kPrompt = 200;
  const TemporaryFolder folder;
  const auto opened = open_model(wide_model(folder, config_of));
  REQUIRE_MESSAGE(opened.ok(), opened.error().message);
  auto links = open_local_links({.kind = LinkKind::kShm}, 1);
  REQUIRE(links.ok());
  Group group(
      {.rank = 0, .links = std::move(links.value()[0]), .kernels = available_kernels().back()});
  CpuDevice device({.threads = threads, .kernels = available_kernels().back()});
  const auto model = Model::load({.config = opened.value().config,
                                  .source = opened.value().source,
                                  .shares = {1},
                                  .tokens_max = kPrompt,
                                  .pages = 4,
                                  .page_list_entries_max = 4},
                                 group, device);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  REQUIRE(model.value()->forward(tokens_at(0, kPrompt)).ok());
  const uint64_t before = device.section_count();
  REQUIRE(model.value()->forward(tokens_at(kPrompt, kPrompt + 1)).ok());
  return device.section_count() - before - (threads > 1 ? 1 : 0);
}

}  // namespace

TEST_CASE("a token needs at most six sections in a dense layer and eight in one with experts") {
  const uint64_t dense = sections_of_a_token("qwen3-bf16-tied", 2);
  CHECK(dense <= 6 * kLayers);
  CHECK(dense >= 5 * kLayers);  // so that nothing was too small to be counted
  for (const char* with_experts : {"qwen3moe-bf16", "glm4moe-bf16"}) {
    CAPTURE(with_experts);
    const uint64_t sections = sections_of_a_token(with_experts, 2);
    CHECK(sections <= 8 * kLayers);
    CHECK(sections >= 5 * kLayers);
  }
}

TEST_CASE("one thread has no sections") {
  CHECK(sections_of_a_token("qwen3moe-bf16", 1) == 0);
}
