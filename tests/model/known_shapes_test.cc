#include "model/shapes/known_shapes.h"

#include <doctest/doctest.h>

#include <iterator>
#include <string>

#include "model/load/model_summary.h"
#include "model/load/shape_model.h"

namespace lockstep {
namespace {

// Publishers count active parameters differently: with the embedding, which a token only looks up
// (kEmbedding); without it (kHead, OpenAI); without embedding and LM head (kNeither, GLM).
enum class Counts { kHead, kEmbedding, kNeither };

// In billions, as given by model cards and papers.
struct Published {
  std::string_view name;
  double total;
  double active;
  Counts counts = Counts::kHead;
};

constexpr Published kPublished[] = {
    {"llama-3.2-1b", 1.236, 1.236},
    {"llama-3.2-3b", 3.213, 3.213},
    {"llama-3.1-8b", 8.030, 8.030, Counts::kEmbedding},
    {"llama-3.3-70b", 70.55, 70.55, Counts::kEmbedding},
    {"mistral-7b", 7.248, 7.248, Counts::kEmbedding},
    {"mistral-large-123b", 122.6, 122.6, Counts::kEmbedding},
    {"devstral-small-2-24b", 23.57, 23.57, Counts::kEmbedding},
    {"devstral-2-123b", 125.0, 125.0, Counts::kEmbedding},
    {"qwen2.5-0.5b", 0.494, 0.494},
    {"qwen2.5-7b", 7.616, 7.616, Counts::kEmbedding},
    {"qwen2.5-72b", 72.71, 72.71, Counts::kEmbedding},
    {"qwen3-0.6b", 0.596, 0.596},
    {"qwen3-1.7b", 1.721, 1.721},
    {"qwen3-4b", 4.022, 4.022},
    {"qwen3-8b", 8.191, 8.191, Counts::kEmbedding},
    {"qwen3-14b", 14.77, 14.77, Counts::kEmbedding},
    {"qwen3-32b", 32.76, 32.76, Counts::kEmbedding},
    {"qwen3-30b-a3b", 30.5, 3.3, Counts::kEmbedding},
    {"qwen3-235b-a22b", 235, 22, Counts::kEmbedding},
    {"qwen3-coder-30b-a3b", 30.5, 3.3, Counts::kEmbedding},
    {"qwen3-coder-480b", 480, 35, Counts::kEmbedding},
    {"deepseek-v3", 671, 37, Counts::kEmbedding},
    {"deepseek-r1", 671, 37, Counts::kEmbedding},
    {"deepseek-v3.1", 671, 37, Counts::kEmbedding},
    {"kimi-k2", 1030, 32.6, Counts::kEmbedding},
    {"kimi-k2-thinking", 1030, 32.6, Counts::kEmbedding},
    {"kimi-k2.5", 1030, 32.6, Counts::kEmbedding},
    {"gpt-oss-20b", 20.91, 3.61},
    {"gpt-oss-120b", 116.83, 5.13},
    {"glm-4.5-air", 106, 12, Counts::kNeither},
    {"glm-4.5", 355, 32, Counts::kNeither},
    {"glm-4.6", 355, 32, Counts::kNeither},
    {"gemma-4-31b", 30.7, 30.7},
    {"gemma-4-26b-a4b", 25.2, 3.8},
    // The cards count 8.0 and 5.1 with the parts for images and sound, and with keys and values
    // that are not used; 4.5 and 2.3 are "effective", without what is looked up.
    {"gemma-4-e4b", 7.46, 4.64},
    {"gemma-4-e2b", 4.63, 2.3},
    {"minimax-m2", 230, 10, Counts::kNeither},
    {"kimi-linear-48b", 49, 3.1},  // the card rounds to "48B-A3B"
    {"qwen3-next-80b-a3b", 80, 3.9, Counts::kEmbedding},
    {"qwen3-coder-next", 80, 3.9, Counts::kEmbedding},
    {"qwen3.5-27b", 27, 27, Counts::kEmbedding},
    {"qwen3.8-27b", 27, 27, Counts::kEmbedding},
    {"qwen3.5-35b-a3b", 35, 3},
    {"qwen3.5-122b-a10b", 122, 9.8, Counts::kEmbedding},  // the card rounds to "A10B"
    {"qwen3.5-397b-a17b", 397, 17, Counts::kEmbedding},
    {"glm-4.7-flash", 30, 3.3, Counts::kNeither},  // the card rounds to "30B-A3B"
    // The card gives the 671 and 37 of V3.1; the index has 0.85.
    {"deepseek-v3.2", 671.9, 38.4, Counts::kEmbedding},
    {"glm-5", 744, 40, Counts::kNeither},
    {"glm-5.2", 743, 40, Counts::kNeither},  // 753 with the draft layer
    {"glm-5.3", 743, 40, Counts::kNeither},
    // The card counts 321 with the draft layer, and gives no number of active ones.
    {"glm-5.3-flash", 313.3, 16.7},
    {"deepseek-v4-flash", 284, 13.27},  // the card rounds to "284B-A13B"
    {"deepseek-v4-pro", 1573, 49},      // the card rounds to "1.6T-A49B"
    // 125 and 51 of n-grams, of which a token uses a few rows.
    {"qwen3.8-flash-next", 176, 6, Counts::kNeither},
};

TEST_CASE("the parameters of each known shape match its publisher's count") {
  for (const Published& published : kPublished) {
    CAPTURE(published.name);
    const auto config = read_shape_config(std::string(published.name));
    REQUIRE_MESSAGE(config.ok(), config.error().message);
    const auto summary = summarise(config.value(), nullptr);
    REQUIRE(summary.ok());
    uint64_t active = summary.value().total.token_parameters;
    for (const ClassSummary& entry : summary.value().classes) {
      const WeightCount& count = entry.count;
      const bool is_head = entry.weight_class == WeightClass::kHead;
      const bool is_embedding = entry.weight_class == WeightClass::kEmbedding;
      if (published.counts == Counts::kEmbedding && is_embedding) {
        active += count.parameters - count.token_parameters;
      }
      if (published.counts == Counts::kNeither && is_head) active -= count.token_parameters;
    }
    CHECK(static_cast<double>(summary.value().total.parameters) / 1e9 ==
          doctest::Approx(published.total).epsilon(0.01));
    CHECK(static_cast<double>(active) / 1e9 == doctest::Approx(published.active).epsilon(0.02));
  }
}

TEST_CASE("every known shape is checked here and has a unique name") {
  CHECK(known_shapes().size() == std::size(kPublished));
  for (const KnownShape& shape : known_shapes()) {
    CAPTURE(shape.name);
    CHECK(find_known_shape(shape.name) == &shape);
    CHECK(shape.example.find('/') != std::string_view::npos);
  }
  CHECK(find_known_shape("llama-9-1t") == nullptr);
}

}  // namespace
}  // namespace lockstep
