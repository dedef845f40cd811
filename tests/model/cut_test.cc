#include "model/load/cut.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/load/weight_table.h"
#include "model/valid_cut.h"

using namespace lockstep;

namespace {

ModelConfig config_of_widths(int heads, int kv_heads, int ffn, int vocabulary) {
  ModelConfig config;
  config.architecture = find_architecture("LlamaForCausalLM");
  config.vocab_size = vocabulary;
  config.head_dim = 8;
  config.hidden = heads * config.head_dim;
  config.ffn = ffn;
  config.layers = 2;
  config.heads = heads;
  config.kv_heads = kv_heads;
  config.value_dim = config.head_dim;
  config.traits.resize(2);
  resolve_traits(config);
  return config;
}

const ModelConfig kSmall = config_of_widths(8, 4, 172, 320);
const ModelConfig kLlama70b = config_of_widths(64, 8, 28672, 128256);
const ModelConfig kManyHeads = config_of_widths(128, 128, 11008, 32000);

uint64_t cut_elements(const ModelConfig& config, const Cut& cut, int rank) {
  uint64_t elements = 0;
  for (const Weight& weight : weight_table(config)) {
    if (weight.split != Split::kWhole) elements += part_of(weight, cut, rank).elements();
  }
  return elements;
}

uint64_t all_elements(const ModelConfig& config) {
  uint64_t elements = 0;
  for (const Weight& weight : weight_table(config)) {
    if (weight.split == Split::kWhole) continue;
    elements += static_cast<uint64_t>(weight.rows) * static_cast<uint64_t>(weight.columns);
  }
  return elements;
}

}  // namespace

TEST_CASE("every head, column and token has exactly one owner, whatever the shares") {
  for (const ModelConfig& config : {kSmall, kLlama70b, kManyHeads}) {
    for (const std::vector<double>& shares :
         std::vector<std::vector<double>>{{1},
                                          {1, 1},
                                          {3, 1},
                                          {2, 1, 1},
                                          {1, 1, 1},
                                          {1, 1, 1, 1},
                                          {100, 1},
                                          {1, 1, 1, 1, 1, 1, 1},
                                          std::vector<double>(16, 1.0)}) {
      const Cut cut = cut_of(config, shares);
      int heads = 0, ffn = 0, vocabulary = 0;
      for (int rank = 0; rank < cut.rank_count(); ++rank) {
        CHECK(cut.heads(rank).begin == heads);
        CHECK(cut.ffn(rank).begin == ffn);
        CHECK(cut.vocabulary(rank).begin == vocabulary);
        heads = cut.heads(rank).end;
        ffn = cut.ffn(rank).end;
        vocabulary = cut.vocabulary(rank).end;
        const Range kv = cut.kv_heads(rank);
        if (cut.heads(rank).size() == 0) continue;
        CHECK(kv.begin == cut.heads(rank).begin / config.heads_per_kv());
        CHECK(kv.end * config.heads_per_kv() >= cut.heads(rank).end);
      }
      CHECK(heads == config.heads);
      CHECK(ffn == config.ffn);
      CHECK(vocabulary == config.vocab_size);
    }
  }
}

TEST_CASE("a rank holds at most 1.02 of its equal part if the ranks divide the leaves") {
  for (const int ranks : {2, 4, 8}) {
    const Cut cut = cut_of(kLlama70b, std::vector<double>(static_cast<size_t>(ranks), 1.0));
    const double equal = static_cast<double>(all_elements(kLlama70b)) / ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(static_cast<double>(cut_elements(kLlama70b, cut, rank)) <= 1.02 * equal);
    }
  }
}

TEST_CASE("without replication the ranks' parts add up to the whole, and shares are kept") {
  const Cut cut = cut_of(kLlama70b, {3, 1});
  const uint64_t first = cut_elements(kLlama70b, cut, 0), second = cut_elements(kLlama70b, cut, 1);
  CHECK(first + second == all_elements(kLlama70b));
  CHECK(static_cast<double>(first) / static_cast<double>(second) ==
        doctest::Approx(3).epsilon(0.01));
}

TEST_CASE("keys and values are replicated only if there are more ranks than their heads") {
  const Cut four = cut_of(kSmall, {1, 1, 1, 1});
  const Cut eight = cut_of(kSmall, std::vector<double>(8, 1.0));
  for (int rank = 0; rank < 4; ++rank) CHECK(four.kv_heads(rank).size() == 1);
  for (int rank = 0; rank < 8; ++rank) {
    CHECK(eight.heads(rank).size() == 1);
    CHECK(eight.kv_heads(rank).size() == 1);
    CHECK(eight.kv_heads(rank).begin == rank / 2);
  }
}

TEST_CASE("there are at most 64 leaves, and they depend only on the model") {
  for (const ModelConfig& config : {kSmall, kLlama70b, kManyHeads}) {
    const Cut one = cut_of(config, {1}), three = cut_of(config, {2, 1, 1});
    CHECK(one.head_shares().leaf_count() <= kLeavesMax);
    CHECK(one.ffn_shares().leaf_count() <= kLeavesMax);
    CHECK(one.head_shares().leaf_count() == three.head_shares().leaf_count());
    CHECK(one.ffn_shares().leaf_count() == three.ffn_shares().leaf_count());
  }
}

TEST_CASE("the steps of a matrix cover its columns and end one subtree for each node") {
  for (const std::vector<double>& shares :
       std::vector<std::vector<double>>{{1}, {3, 1}, {2, 1, 1}}) {
    const Cut cut = cut_of(kSmall, shares);
    for (int rank = 0; rank < cut.rank_count(); ++rank) {
      int columns = 0, ends = 0, open = 0;
      for (const LeafStep& step : cut.ffn_steps(rank)) {
        columns += step.columns;
        open += 1 - step.merges;
        if (step.ends_subtree != 0) {
          ++ends;
          CHECK(open == 1);  // nothing is left on the stack of sums
          open = 0;
        }
      }
      CHECK(columns == cut.ffn(rank).size());
      CHECK(ends == static_cast<int>(cut.ffn_shares().nodes(rank).size()));
    }
  }
}

TEST_CASE("with more ranks than leaves some ranks have no work, but a valid cut") {
  const Cut cut = cut_of(config_of_widths(2, 1, 20, 7), std::vector<double>(5, 1.0));
  int with_heads = 0, with_ffn = 0;
  for (int rank = 0; rank < 5; ++rank) {
    with_heads += cut.heads(rank).size() > 0 ? 1 : 0;
    with_ffn += cut.ffn(rank).size() > 0 ? 1 : 0;
  }
  CHECK(with_heads == 2);
  CHECK(with_ffn == 1);
}

TEST_CASE("invalid shares are refused") {
  for (const std::vector<double>& shares :
       std::vector<std::vector<double>>{{}, {0}, {1, -1}, {1, NAN}, {INFINITY, 1}}) {
    CHECK(!Cut::make(kSmall, shares).ok());
  }
}

TEST_CASE("every weight of a layer has a distinct role, and tied embeddings occur once") {
  ModelConfig config = kSmall;
  CHECK(weight_table(config).size() == 3 + 2 * 9);
  config.tied_embeddings = true;
  CHECK(weight_table(config).size() == 2 + 2 * 9);
  config.latent = LatentConfig{.query_rank = 8, .kv_rank = 4, .nope = 8, .rope = 4, .value = 8};
  config.compressed = CompressedConfig{.groups = 1, .group_rank = 8};
  for (const Architecture* architecture : known_architectures()) {
    config.architecture = architecture;
    for (LayerTraits& layer : config.traits) layer.mixer = architecture->dense.mixer;
    const std::vector<Weight> table = weight_table(config);
    for (const Weight& a : table) {
      for (const Weight& b : table) {
        CHECK((&a == &b || a.layer != b.layer || a.role != b.role));
        CHECK((&a == &b || a.name != b.name));
      }
    }
  }
}
