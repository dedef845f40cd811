#include "model/load/stages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "model/load/open_model.h"
#include "model/load/shape_model.h"

using namespace lockstep;

namespace {

std::vector<int> sizes_of(const TokenBytes& bytes, const std::vector<double>& shares) {
  const auto ranges = deal_layers(bytes, shares);
  REQUIRE(ranges.ok());
  std::vector<int> sizes;
  int next = 0;
  for (const Range& range : ranges.value()) {
    CHECK(range.begin == next);
    next = range.end;
    sizes.push_back(range.size());
  }
  CHECK(next == static_cast<int>(bytes.layers.size()));
  return sizes;
}

TokenBytes equal_layers(int layers, double head = 0) {
  return {.layers = std::vector<double>(static_cast<size_t>(layers), 1.0), .head = head};
}

double slowest(const TokenBytes& bytes, const std::vector<double>& shares,
               const std::vector<int>& sizes) {
  double most = 0;
  size_t layer = 0;
  for (size_t stage = 0; stage < sizes.size(); ++stage) {
    double load = stage == 0 ? bytes.embedding : 0;
    if (stage + 1 == sizes.size()) load += bytes.head;
    for (int i = 0; i < sizes[stage]; ++i) load += bytes.layers[layer++];
    most = std::max(most, load / shares[stage]);
  }
  return most;
}

// The minimum over all possible splits, found by trying each.
double least_by_trial(const TokenBytes& bytes, const std::vector<double>& shares,
                      std::vector<int>& sizes) {
  const size_t stages = shares.size() - sizes.size();
  int left = static_cast<int>(bytes.layers.size());
  for (const int size : sizes) left -= size;
  if (stages == 1) {
    sizes.push_back(left);
    const double time = slowest(bytes, shares, sizes);
    sizes.pop_back();
    return time;
  }
  double least = 1e300;
  for (int own = 1; own <= left - static_cast<int>(stages) + 1; ++own) {
    sizes.push_back(own);
    least = std::min(least, least_by_trial(bytes, shares, sizes));
    sizes.pop_back();
  }
  return least;
}

}  // namespace

TEST_CASE("layers are assigned by the shares of the stages, the LM head counted with the last") {
  CHECK(sizes_of(equal_layers(8), {1}) == std::vector<int>{8});
  CHECK(sizes_of(equal_layers(8), {1, 1}) == std::vector<int>{4, 4});
  CHECK(sizes_of(equal_layers(8), {3, 1}) == std::vector<int>{6, 2});
  CHECK(sizes_of(equal_layers(9), {1, 1, 1}) == std::vector<int>{3, 3, 3});
  CHECK(sizes_of(equal_layers(10, 4), {1, 1}) == std::vector<int>{7, 3});
  CHECK(sizes_of(equal_layers(28, 100), {1, 1}) == std::vector<int>{27, 1});
}

TEST_CASE("every stage has at least one layer, and more stages than layers are refused") {
  CHECK(sizes_of(equal_layers(3), {100, 1, 1}) == std::vector<int>{1, 1, 1});
  CHECK(sizes_of(equal_layers(8), {1, 1000}) == std::vector<int>{1, 7});
  const auto refused = deal_layers(equal_layers(2), std::vector<double>{1, 1, 1});
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message == "the model has 2 layers, too few for 3 stages");
}

TEST_CASE("layers that use keys and values, or a choice of positions, stay in one stage") {
  TokenBytes bytes = equal_layers(6);
  bytes.joined = {false, false, true, true, true, true};
  CHECK(bytes.stages_max() == 2);
  CHECK(sizes_of(bytes, {1, 1}) == std::vector<int>{1, 5});
  CHECK(sizes_of(bytes, {1, 100}) == std::vector<int>{1, 5});
  CHECK(sizes_of(bytes, {1}) == std::vector<int>{6});
  const auto joined = [](const char* name) {
    const auto config =
        read_config(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/data/golden/" + name);
    REQUIRE(config.ok());
    return joined_layers(config.value());
  };
  const std::vector<bool> gemma = joined("gemma4-e-bf16");
  CHECK(std::count(gemma.begin(), gemma.end(), false) == 2);
  CHECK((!gemma[0] && !gemma[1]));
  CHECK(joined("llama3-bf16") == std::vector<bool>(2, false));
  bytes.joined = {false, false, true, true, false, true};
  CHECK(sizes_of(bytes, {1, 1}) == std::vector<int>{4, 2});
  CHECK(sizes_of(bytes, {1, 1, 1}) == std::vector<int>{1, 3, 2});
  const auto refused = deal_layers(bytes, std::vector<double>{1, 1, 1, 1});
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message ==
        "the model has 6 layers in 3 groups that use each other's keys or choices of positions, "
        "too few for 4 stages");
}

TEST_CASE("stages that do not determine the time are balanced too") {
  // The last stage is always the slowest; the three layers before it need not be in one stage.
  CHECK(sizes_of(equal_layers(5, 10), {1, 1, 1}) == std::vector<int>{2, 2, 1});
}

TEST_CASE("no other split has a faster slowest stage") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> bytes_of(0.1, 4), share_of(0.2, 3);
  for (int round = 0; round < 200; ++round) {
    TokenBytes bytes{.embedding = bytes_of(random) / 10, .head = bytes_of(random)};
    for (int i = 0; i < 4 + round % 7; ++i) bytes.layers.push_back(bytes_of(random));
    std::vector<double> shares;
    for (int i = 0; i < 1 + round % 4; ++i) shares.push_back(share_of(random));
    std::vector<int> tried;
    const double least = least_by_trial(bytes, shares, tried);
    CHECK(slowest(bytes, shares, sizes_of(bytes, shares)) <= least * (1 + 1e-8));
  }
}

TEST_CASE("the share of a stage is the sum of its ranks'") {
  const std::vector<double> shares{3, 1, 2, 2, 1, 1};
  CHECK(stage_shares(shares, 1) == std::vector<double>{10});
  CHECK(stage_shares(shares, 3) == std::vector<double>{4, 4, 2});
  CHECK(stage_shares(shares, 6) == shares);
}

TEST_CASE("a token's bytes are counted from the checkpoint: dense, tied and with experts") {
  const auto bytes_of = [](const std::string& folder) {
    const auto opened =
        open_model(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/data/golden/" + folder);
    REQUIRE(opened.ok());
    const auto bytes = token_bytes_of(*opened.value().source, opened.value().config);
    REQUIRE(bytes.ok());
    const ModelConfig& config = opened.value().config;
    CHECK(bytes.value().layers.size() == static_cast<size_t>(config.layers));
    return std::pair(bytes.value(), config);
  };
  const auto [dense, llama] = bytes_of("llama3-bf16");
  const double head = 2.0 * llama.vocab_size * llama.hidden;
  CHECK(dense.head == head);
  CHECK(dense.embedding == 2.0 * llama.hidden);
  const double attention = 2.0 * llama.hidden * llama.head_dim * (llama.heads + llama.kv_heads);
  const double feed_forward = 3.0 * llama.hidden * llama.ffn;
  CHECK(dense.layers[0] == 2 * (attention + feed_forward));
  CHECK(dense.layers[1] == dense.layers[0]);
  const auto [tied, tied_config] = bytes_of("llama3-bf16-tied");
  CHECK(tied.head == 2.0 * tied_config.vocab_size * tied_config.hidden);
  // Latent attention with heads stored separately; the first layer is dense, the others have
  // experts.
  const auto [latent, deepseek] = bytes_of("deepseekv3-q4-g32-kvb");
  CHECK(latent.layers[0] > 0);
  CHECK(latent.layers[1] == latent.layers[2]);
  const auto [split, kimi] = bytes_of("deepseekv3-q4-g64");
  CHECK(split.layers[1] == split.layers[2]);
  CHECK(split.layers[0] > 0);
}
