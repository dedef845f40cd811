// The operations of a pass do not depend on its tokens, so that a GPU plays what it has recorded.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "device/null_device.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "support/golden.h"
#include "transport/unformed_link.h"

using namespace lockstep;

namespace {

// Keeps the operations instead of computing them; turns of the host are left out.
class KeepingDevice final : public NullDevice {
 public:
  Result<BufferId> allocate(size_t bytes, Access /*access*/) override {
    buffers_.emplace_back(bytes / sizeof(float));
    return static_cast<BufferId>(buffers_.size() - 1);
  }
  void queue(const Operation& operation) override { queued_.push_back(operation); }
  std::span<float> host(BufferId buffer) override { return buffers_[static_cast<size_t>(buffer)]; }

  std::vector<Operation> take() { return std::exchange(queued_, {}); }

 private:
  std::vector<std::vector<float>> buffers_;
  std::vector<Operation> queued_;
};

constexpr int kTokens = 4;

std::vector<Operation> operations_of(Model& model, KeepingDevice& device,
                                     const std::vector<int32_t>& tokens) {
  Batch batch{.tokens = tokens, .page_lists = {0}};
  for (int32_t i = 0; i < kTokens; ++i) {
    batch.positions.push_back(i);
    batch.list_offsets.push_back(0);
    if (model.limits().states == 0) continue;
    batch.states_from.push_back(i - 1);
    batch.states_to.push_back(i);
  }
  batch.outputs = {kTokens - 1};
  (void)device.take();
  REQUIRE(model.forward(batch).ok());
  return device.take();
}

}  // namespace

TEST_CASE("the operations of a pass are the same, whichever ranks have its tokens' embeddings") {
  for (const char* name : {"llama3-bf16", "gemma4-e-bf16", "qwen35moe-bf16", "deepseekv4-bf16"}) {
    CAPTURE(name);
    const auto opened = open_model(golden_folder(name));
    REQUIRE(opened.ok());
    const ModelConfig& config = opened.value().config;
    for (const int rank : {0, 1, 2}) {
      CAPTURE(rank);
      Group unformed({.rank = rank, .links = unformed_links(rank, 3)});
      KeepingDevice device;
      const auto model = Model::load({.config = config,
                                      .source = opened.value().source,
                                      .shares = {1, 2, 1},
                                      .tokens_max = kTokens,
                                      .pages = 1,
                                      .states = config.delta ? kTokens : 0,
                                      .kv = kKvDefault,
                                      .page_list_entries_max = 1},
                                     unformed, device);
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      const int32_t last = config.vocab_size - 1;
      const auto expected = operations_of(*model.value(), device, {0, 0, 0, 0});
      CHECK(expected.size() > 10);
      for (const std::vector<int32_t>& tokens : {std::vector<int32_t>{last, last, last, last},
                                                 {0, last, 0, last},
                                                 {last / 2, 0, last, last / 2}}) {
        CHECK(operations_of(*model.value(), device, tokens) == expected);
      }
    }
  }
}
