// A model over RDMA as Macs have it, played by the fake library: prompts whose exchanges are far
// larger than a port's ring, many loads one after the other, and what is seen without the fence.
#include "transport/verbs/verbs_api.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/random_model.h"
#include "support/rank_threads.h"
#include "support/temporary_folder.h"
#include "support/verbs_ranks.h"
#include "transport/fake_devices.h"

using namespace lockstep;

namespace {

constexpr int kPromptTokens = 8192;
constexpr int kHiddenSize = 512;
constexpr size_t kLongFrame = 64 * 1024;
constexpr int kRails = 8;

// Wide and shallow: a step of the whole prompt exchanges 16 MiB.
void write_wide_model(const std::filesystem::path& folder) {
  write_random_model("llama3-bf16",
                     {{"hidden_size", kHiddenSize},
                      {"intermediate_size", 64},
                      {"num_hidden_layers", 1},
                      {"num_attention_heads", 2},
                      {"num_key_value_heads", 2},
                      {"max_position_embeddings", 2 * kPromptTokens}},
                     folder);
}

GenerateRequest long_request() {
  GenerateRequest request{.max_tokens = 1, .prompt_logits = true};
  std::minstd_rand random(5);
  for (int i = 0; i < kPromptTokens; ++i) {
    request.prompt.push_back(static_cast<int32_t>(random() % 300) + 1);
  }
  return request;
}

Setup setup_of(int rails) {
  return {.shares = {1, 1},
          .link = LinkKind::kVerbs,
          .rails = rails,
          .batch_tokens_max = kPromptTokens};
}

std::vector<VerbsRank> open_macs(bool is_fenced) {
  std::vector<VerbsRank> macs;
  for (int i = 0; i < 2; ++i) {
    macs.push_back({is_fenced ? open_fake_devices() : open_unfenced_devices(), "127.0.0.1"});
  }
  return macs;
}

// The outcome of a run with a late receiver.
struct LateRun {
  std::vector<std::string> errors;  // (ranks)
  Answer answer;
};

// Rank 1 gets the plan of the first step, which is one frame, and acknowledges what came before it.
// It gets nothing of the exchange that follows until `frames` were sent.
LateRun run_late(LocalLinks links, const std::string& model, FakeScope& fake, int frames) {
  LateRun late;
  late.errors =
      try_ranks_with(std::move(links), model, setup_of(kRails), [&](Engine& engine, int rank) {
        Collector events(1, engine);
        if (rank == 0) {
          fake->passing_messages = 1;
          fake->holding_messages = frames;
          fake->held_port = fake->ports.load();  // the last one opened is rank 1's
          engine.submit(0, long_request());
        }
        const Status status = engine.run(events);
        if (rank == 0) late.answer = events.take()[0];
        return status;
      });
  CHECK(fake->held_port == 0);  // it was late indeed
  return late;
}

}  // namespace

TEST_CASE("a prompt of 8192 tokens over a Mac's links has the answer of one rank") {
  const TemporaryFolder work;
  const std::string model = (work.path() / "model").string();
  write_wide_model(model);
  const GenerateRequest request = long_request();
  const Answer reference =
      run_ranks(model, {.batch_tokens_max = kPromptTokens}, {request}).answers[0];
  REQUIRE(reference.logits.size() == static_cast<size_t>(kPromptTokens));
  struct Case {
    int rails;
    size_t frame_bytes;
  };
  for (const Case& subject : {Case{1, 0}, Case{kRails, kLongFrame}}) {
    CAPTURE(subject.rails);
    FakeScope fake(FakeMode::kApple);
    const std::vector<VerbsRank> macs = open_macs(true);
    const Setup setup = setup_of(subject.rails);
    LocalLinks links = open_verbs_links(macs, link_options_of(setup), 1, subject.frame_bytes);
    const uint64_t before = fake->messages;
    const Outcome outcome = run_ranks_over(std::move(links), model, setup, {request});
    CHECK(same_bits(outcome.answers[0], reference));
    const uint64_t frame_bytes = subject.frame_bytes == 0 ? 16 * 1024 : subject.frame_bytes;
    CHECK((fake->messages - before) * frame_bytes > 4 * kFakeApplePortBytes);
    CHECK(fake->overflows == 0);
    CHECK(fake->early_messages == 0);
    CHECK(fake->unequal_buffers == 0);
  }
}

TEST_CASE("a late Mac gets a long prompt whole, and without the fence says what it lacks") {
  const TemporaryFolder work;
  const std::string model = (work.path() / "model").string();
  write_wide_model(model);
  SUBCASE("with the fence") {
    FakeScope fake(FakeMode::kApple);
    const std::vector<VerbsRank> macs = open_macs(true);
    LocalLinks links = open_verbs_links(macs, link_options_of(setup_of(kRails)), 1, kLongFrame);
    // A rail whose last frame is not acknowledged has room for one more.
    const LateRun late = run_late(std::move(links), model, fake, kRails);
    for (const std::string& error : late.errors) CHECK(error == "");
    const Setup alone{.batch_tokens_max = kPromptTokens};
    CHECK(same_bits(late.answer, run_ranks(model, alone, {long_request()}).answers[0]));
    CHECK(fake->overflows == 0);
  }
  SUBCASE("without it") {
    FakeScope fake(FakeMode::kApple);
    const std::vector<VerbsRank> macs = open_macs(false);
    LocalLinks links = open_verbs_links(macs, link_options_of(setup_of(kRails)), 1, kLongFrame);
    const int frames = kFakeApplePortBytes / kLongFrame + 1;  // the last one finds no room
    const LateRun late = run_late(std::move(links), model, fake, frames);
    CHECK(fake->overflows > 0);
    CHECK(late.answer.tokens.empty());
    const std::string& sender = late.errors.at(0);
    const std::string& receiver = late.errors.at(1);
    CAPTURE(sender);
    CAPTURE(receiver);
    const bool is_told =
        receiver.find("rank 0: a frame has sequence number") == 0 ||
        (receiver.find("rank 0: ") == 0 &&
         receiver.find("frames that it sent over RDMA have not arrived") != std::string::npos);
    // If the sender ends first, it says why, and the receiver's wait is cancelled.
    const bool is_cancelled = receiver == "rank 0: the wait for a message was cancelled";
    const bool says_sender = sender != "" && sender.find("cancelled") == std::string::npos;
    CHECK((is_told || (is_cancelled && says_sender)));
    CHECK(sender != "");
  }
}

TEST_CASE("200 loads over a Mac's links open its devices once, and nothing is left in the end") {
  FakeScope fake(FakeMode::kApple);
  const std::string model = golden_folder("llama3-bf16");
  const GenerateRequest request{.prompt = read_golden(model).prompt, .max_tokens = 2};
  const Answer reference = run_ranks(model, {}, {request}).answers[0];
  fake->opens_left = 4;  // each Mac's device and its protection domain, and then no more
  std::vector<VerbsRank> macs = open_macs(true);
  const Setup setup{.shares = {1, 1}, .link = LinkKind::kVerbs};
  for (uint32_t round = 1; round <= 200; ++round) {
    LocalLinks links = open_verbs_links(macs, link_options_of(setup), round);
    const Outcome outcome = run_ranks_over(std::move(links), model, setup, {request});
    REQUIRE(same_bits(outcome.answers[0], reference));
  }
  CHECK(fake->opens_left == 0);
  for (const VerbsRank& mac : macs) {
    CHECK(mac.devices->counts().contexts == 1);
    CHECK(mac.devices->counts().domains == 1);
    CHECK(mac.devices->counts().regions == 1);
    CHECK(mac.devices->counts().queue_pairs == 1);
  }
  macs.clear();
  for (const int left : {fake->contexts.load(), fake->domains.load(), fake->regions.load(),
                         fake->completion_queues.load(), fake->queue_pairs.load()}) {
    CHECK(left == 0);
  }
  CHECK(fake->early_messages == 0);
  CHECK(fake->overflows == 0);
}

#endif
