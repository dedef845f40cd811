#include "model/quantising.h"

#include <utility>

#include "model/weight_table.h"

namespace lockstep {
namespace {

constexpr int kRouterBits = 8;

}  // namespace

std::shared_ptr<const QuantisingSource> quantising_source(
    std::shared_ptr<const WeightSource> source, const ModelConfig& config,
    const QuantisingChoice& choice) {
  QuantisingOptions options{.bits = choice.bits,
                            .requantises = choice.requantises,
                            .threads = choice.threads,
                            .first_core = choice.first_core};
  for (const Weight& weight : weight_table(config)) {
    if (weight.role != Role::kRouter) continue;
    const bool is_sigmoid = config.kind(weight.layer).feed_forward == FeedForward::kSigmoidExperts;
    options.bits_of.emplace(weight.name, is_sigmoid ? 0 : kRouterBits);
  }
  if (config.latent) {
    options.latent = {.count = config.heads,
                      .nope = config.latent->nope,
                      .value = config.latent->value,
                      .kv_rank = config.latent->kv_rank};
  }
  return std::make_shared<const QuantisingSource>(std::move(source), std::move(options));
}

}  // namespace lockstep
