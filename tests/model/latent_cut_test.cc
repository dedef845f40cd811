#include "model/load/latent_cut.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/load/cut.h"
#include "model/load/shape_model.h"
#include "model/valid_cut.h"

using namespace lockstep;

namespace {

ModelConfig latent_config(const std::string& shape) {
  ModelConfig config = config_of_shape(shape);
  REQUIRE(config.latent.rows() > 0);
  return config;
}

ModelConfig golden_config(const std::string& name) {
  return latent_config(std::string(LOCKSTEP_SOURCE_DIR) + "/tests/data/golden/" + name);
}

LatentCutCase case_of(const ModelConfig& config, double bits, int ranks, LinkKind link) {
  const int rows = config.latent.rows();
  return {.layer_bytes = static_cast<uint64_t>(bits / 8 * rows * config.hidden),
          .rows = rows,
          .ranks = ranks,
          .link = link};
}

Cut cut_latents(const ModelConfig& config, const std::vector<double>& shares,
                bool cuts_latents = true) {
  return cut_of(config, shares, {.cuts_latents = cuts_latents});
}

}  // namespace

TEST_CASE("splitting latent projections pays off for published models, not for tiny ones") {
  const char* const published[] = {"deepseek-v3", "deepseek-v3.1", "kimi-k2", "kimi-k2-thinking"};
  const char* const tiny[] = {"deepseekv3-bf16", "deepseekv3-fp8", "deepseekv3-q4-g64",
                              "kimik2-q8-g32"};
  for (const LinkKind link : {LinkKind::kShm, LinkKind::kTcp}) {
    for (const int ranks : {2, 4, 8}) {
      for (const double bits : {4.5, 8.0, 16.0}) {
        for (const char* name : published) {
          CHECK(latent_cut_pays(case_of(latent_config(name), bits, ranks, link)));
        }
        for (const char* name : tiny) {
          CHECK(!latent_cut_pays(case_of(golden_config(name), bits, ranks, link)));
        }
      }
    }
  }
}

TEST_CASE("the times follow from the bytes and the links") {
  // Two ranks: each reads 1 MB less, at 20 GB/s, and receives 500 floats from one peer at 10 GB/s.
  const LatentCutTimes shm = latent_cut_times(
      {.layer_bytes = 2'000'000, .rows = 1000, .ranks = 2, .link = LinkKind::kShm});
  CHECK(shm.saved_us == doctest::Approx(50));
  CHECK(shm.exchange_us == doctest::Approx(2 * (1 + 0.2)));
  // Four ranks: 1.5 MB less, three peers, 750 floats at 2.5 GB/s.
  const LatentCutTimes tcp = latent_cut_times(
      {.layer_bytes = 2'000'000, .rows = 1000, .ranks = 4, .link = LinkKind::kTcp});
  CHECK(tcp.saved_us == doctest::Approx(75));
  CHECK(tcp.exchange_us == doctest::Approx(2 * (3 * 8 + 1.2)));
}

TEST_CASE("an explicit option overrides the cost model, and one rank never cuts") {
  const LatentCutCase large{.layer_bytes = 10'000'000, .rows = 2112, .ranks = 2};
  const LatentCutCase small{.layer_bytes = 10'000, .rows = 144, .ranks = 2};
  const LatentCutCase alone{.layer_bytes = 10'000'000, .rows = 2112, .ranks = 1};
  CHECK(cuts_latents(LatentCut::kAuto, large));
  CHECK(!cuts_latents(LatentCut::kNever, large));
  CHECK(!cuts_latents(LatentCut::kAuto, small));
  CHECK(cuts_latents(LatentCut::kAlways, small));
  CHECK(!cuts_latents(LatentCut::kAlways, alone));
  CHECK(!cuts_latents(LatentCut::kAuto, {.ranks = 2}));  // a model without latents
}

TEST_CASE("every row of the latents has exactly one owner, on tile borders") {
  ModelConfig no_query_latent = golden_config("deepseekv3-bf16");
  no_query_latent.latent.query_rank = 0;
  ModelConfig odd = golden_config("deepseekv3-bf16");
  odd.latent.query_rank = 50;  // the last leaf of the query is not full
  for (const ModelConfig& config :
       {latent_config("deepseek-v3"), golden_config("deepseekv3-bf16"), no_query_latent, odd}) {
    const int query_rows = config.latent.query_rank;
    const int kv_rows = config.latent.kv_rank + config.latent.rope;
    for (const std::vector<double>& shares :
         std::vector<std::vector<double>>{{1},
                                          {1, 1},
                                          {3, 1},
                                          {1, 100},
                                          {2, 1, 1},
                                          std::vector<double>(7, 1.0),
                                          std::vector<double>(16, 1.0)}) {
      const Cut cut = cut_latents(config, shares), whole = cut_latents(config, shares, false);
      int query = 0, kv = 0;
      for (int rank = 0; rank < cut.rank_count(); ++rank) {
        for (const Range rows : {cut.query_latent(rank), cut.kv_latent(rank)}) {
          CHECK((rows.size() == 0 || rows.begin % kLatentLeafRows == 0));
        }
        CHECK(cut.query_latent(rank).begin == query);
        CHECK(cut.kv_latent(rank).begin == kv);
        CHECK((cut.kv_latent(rank).size() == 0 || cut.query_latent(rank).end == query_rows));
        query = cut.query_latent(rank).end;
        kv = cut.kv_latent(rank).end;
        CHECK(whole.query_latent(rank).size() == query_rows);
        CHECK(whole.kv_latent(rank).size() == kv_rows);
      }
      CHECK(query == query_rows);
      CHECK(kv == kv_rows);
    }
  }
}

TEST_CASE("equal ranks share the rows of both latents evenly, though each has few leaves") {
  const ModelConfig config = latent_config("deepseek-v3");
  for (const int ranks : {2, 4, 8}) {
    const Cut cut = cut_latents(config, std::vector<double>(static_cast<size_t>(ranks), 1.0));
    const int leaves = (1536 + 512 + 64) / kLatentLeafRows;
    for (int rank = 0; rank < ranks; ++rank) {
      const int rows = cut.query_latent(rank).size() + cut.kv_latent(rank).size();
      CHECK(rows <= (leaves + ranks - 1) / ranks * kLatentLeafRows);
    }
  }
}

TEST_CASE("a model without latent attention has no latents to cut") {
  auto config = read_shape_config("llama-3.2-1b");
  REQUIRE(config.ok());
  const Cut cut = cut_latents(config.value(), {1, 1});
  CHECK(!cut.cuts_latents());
  CHECK(cut.query_latent(0).size() == 0);
  CHECK(cut.kv_latent(1).size() == 0);
}
