#include "engine/engine.h"

#include <doctest/doctest.h>

#include "engine/schedule/inbox.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"
#include "support/golden.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

const std::string kLlama3 = golden_folder("llama3-bf16");

// Loads one rank alone and forwards `batch`; returns how often the host waited for the device.
uint64_t waits_on_device(const char* device_kind, const std::string& folder = kLlama3) {
  Group group({.links = [] {
    std::vector<std::unique_ptr<Link>> none(1);
    return none;
  }()});
  auto device = open_device({.kind = device_kind, .kernels = available_kernels().back()});
  REQUIRE(device.ok());
  const auto opened = open_model(folder);
  REQUIRE(opened.ok());
  auto model = Model::load({.config = opened.value().config,
                            .source = opened.value().source,
                            .shares = {1},
                            .tokens_max = 8,
                            .pages = 2,
                            .page_list_entries_max = 2},
                           group, *device.value());
  REQUIRE(model.ok());
  const uint64_t before = device.value()->wait_count();
  const auto logits = model.value()->forward({.tokens = {1, 2, 3},
                                              .positions = {0, 1, 2},
                                              .list_offsets = {0, 0, 0},
                                              .page_lists = {1},
                                              .outputs = {2}});
  REQUIRE(logits.ok());
  return device.value()->wait_count() - before;
}

Result<std::unique_ptr<Engine>> load_alone(GroupSpec spec) {
  std::vector<std::unique_ptr<Link>> links(1);
  spec.threads = 1;
  EngineOptions options;
  options.spec = std::move(spec);
  options.kernels = available_kernels().back();
  return load_engine(options, Group({.links = std::move(links)}));
}

}  // namespace

TEST_CASE("a pass waits for the device once for each exchange and no more") {
  constexpr uint64_t kLayers = 2;
  CHECK(waits_on_device("cpu") == 2 * kLayers + 2);
  CHECK(waits_on_device("delayed") == 2 * kLayers + 2);
  // The dense part and the experts of a layer are summed apart, in one exchange.
  CHECK(waits_on_device("cpu", golden_folder("gemma4-moe-bf16")) == 2 * 4 + 2);
  // The inputs of layers are gathered with the embeddings.
  CHECK(waits_on_device("cpu", golden_folder("gemma4-e-bf16")) == 2 * 6 + 2);
}

TEST_CASE("the ranks' weight bytes are those of the table, and those that were read") {
  const Setup one{}, three{.shares = {2, 1, 1}};
  const GenerateRequest request{.prompt = {1}, .max_tokens = 1};
  const LoadReport whole = run_ranks(kLlama3, one, {request}).reports[0];
  CHECK(whole.weight_bytes == whole.read_bytes);
  uint64_t sum = 0;
  for (const LoadReport& report : run_ranks(kLlama3, three, {request}).reports) {
    CHECK(report.weight_bytes == report.read_bytes);
    sum += report.weight_bytes;
  }
  const uint64_t norms = 5 * 128 * 2;  // two per layer and the last, bfloat16, on every rank
  CHECK(sum == whole.weight_bytes + 2 * norms);
}

TEST_CASE("invalid, cancelled or too long requests end alone; the others continue") {
  std::vector<GenerateRequest> requests{{.prompt = {1, 2}, .max_tokens = 3},
                                        {.prompt = {}, .max_tokens = 3},
                                        {.prompt = {9999}, .max_tokens = 3},
                                        {.prompt = std::vector<int32_t>(2000, 1)}};
  const auto answers = run_ranks(kLlama3, {.shares = {1, 1}}, requests).answers;
  CHECK(answers[0].error.empty());
  CHECK(answers[0].tokens.size() == 3);
  CHECK(answers[1].error.find("no tokens") != std::string::npos);
  CHECK(answers[2].error.find("9999") != std::string::npos);
  CHECK(answers[3].error.find("2000 tokens") != std::string::npos);
}

TEST_CASE("prompts longer than a step are fed in several") {
  const std::vector<int32_t> prompt(100, 5);
  const GenerateRequest request{.prompt = prompt, .max_tokens = 4, .prompt_logits = true};
  const auto whole = run_ranks(kLlama3, {}, {request}).answers[0];
  const auto pieces = run_ranks(kLlama3, {.shares = {1, 1}, .batch_tokens_max = 16}, {request});
  CHECK(pieces.answers[0].tokens == whole.tokens);
  CHECK(pieces.answers[0].logits == whole.logits);
  CHECK(whole.logits.size() == 100);
}

TEST_CASE("models that cannot be loaded say why") {
  const auto sentence = [](GroupSpec spec) {
    auto engine = load_alone(std::move(spec));
    REQUIRE(!engine.ok());
    return engine.error().message;
  };
  CHECK(sentence({.model = "/nonexistent"}).find("/nonexistent") != std::string::npos);
  CHECK(sentence({.model = kLlama3, .device = "gpu"}).find("gpu") != std::string::npos);
  CHECK(sentence({.model = kLlama3, .context = 5000}).find("1024 positions") != std::string::npos);
}

TEST_CASE("a stop that comes before the run ends it at once") {
  auto engine = load_alone({.model = kLlama3});
  REQUIRE(engine.ok());
  engine.value()->stop();
  Collector events(1, *engine.value());
  CHECK(engine.value()->run(events).ok());
  CHECK(engine.value()->run(events).ok());  // a stop is permanent
}

TEST_CASE("a request that cannot be made ends alone, with the reason") {
  auto engine = load_alone({.model = kLlama3});
  REQUIRE(engine.ok());
  engine.value()->submit(0, []() -> Result<GenerateRequest> {
    return Error{ErrorCode::kCorrupt, "the request is cut off"};
  });
  engine.value()->submit(1, GenerateRequest{.prompt = {1}, .max_tokens = 2});
  Collector events(2, *engine.value());
  CHECK(engine.value()->run(events).ok());
  const std::vector<Answer> answers = events.take();
  CHECK(answers[0].error == "the request is cut off");
  CHECK(answers[1].tokens.size() == 2);
}

TEST_CASE("items from other threads arrive once, in order") {
  Inbox inbox;
  CHECK(inbox.take().submitted.empty());
  std::thread other([&] {
    for (uint64_t id = 0; id < 100; ++id)
      inbox.submit(id, [] { return GenerateRequest{.prompt = {1}}; });
    inbox.cancel(5);
    inbox.stop();
  });
  uint64_t next = 0;
  size_t cancelled = 0;
  bool stop = false;
  while (!stop) {
    inbox.wait();
    const Inbox::Contents contents = inbox.take();
    for (const auto& submission : contents.submitted) CHECK(submission.id == next++);
    cancelled += contents.cancelled.size();
    stop = contents.stop;
  }
  other.join();
  CHECK(next == 100);
  CHECK(cancelled == 1);
  inbox.wait();  // returns at once: the stop is permanent
  CHECK(inbox.take().stop);
}
