// Pages of state that a process saves to its disk, reused by later processes: the bits of every
// answer are those of a process that computes everything.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "engine/spill.h"
#include "support/comes_true.h"
#include "support/golden.h"
#include "support/model_copy.h"
#include "support/rank_threads.h"
#include "support/story_requests.h"
#include "support/temporary_folder.h"
#include "transport/unformed_link.h"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

struct Placement {
  std::string name;
  Setup setup;
};

std::vector<Placement> placements(bool has_latents) {
  std::vector<Placement> all{
      {"1 rank", {}},
      {"shares 3:1", {.shares = {3, 1}}},
      {"2 stages", {.shares = {1, 1}, .stages = 2}},
      {"4 ranks", {.shares = {1, 1, 1, 1}}},
      {"2 stages of 2 ranks", {.shares = {2, 1, 1, 1}, .stages = 2}},
      {"8 ranks, of which some have no heads", {.shares = std::vector<double>(8, 1.0)}},
      {"shares 1:2:1 on the test device", {.shares = {1, 2, 1}, .device = "delayed"}},
      {"2 ranks over tcp, short steps",
       {.shares = {1, 1}, .link = LinkKind::kTcp, .batch_tokens_max = 24}},
  };
  if (!has_latents) return all;
  all.push_back({"3:1, cut", {.shares = {3, 1}, .latent_cut = LatentCut::kAlways}});
  all.push_back({"3 ranks, whole", {.shares = {1, 1, 1}, .latent_cut = LatentCut::kNever}});
  return all;
}

}  // namespace

TEST_CASE("pages that one placement saves any other loads, with the bits of computed ones") {
  ModelCopy windowed(golden_folder("mistral-bf16"));  // all layers have a window
  windowed.change_config("sliding_window", 100);
  const std::vector<std::string> models{
      windowed.path(),
      kStories,
      golden_folder("llama3-bf16"),
      golden_folder("gptoss-mxfp4"),
      golden_folder("gemma4-dense-bf16"),
      golden_folder("gemma4-e-bf16"),
      golden_folder("qwen3moe-q4-g64"),
      golden_folder("deepseekv3-bf16"),
      golden_folder("deepseekv3-q4-g64"),
      golden_folder("kimik2-q8-g32"),
      golden_folder("deepseekv32-bf16"),
      golden_folder("glmdsa-shared-bf16"),
      golden_folder("deepseekv4-bf16"),
      golden_folder("qwen4exp-bf16"),
  };
  const std::vector<GenerateRequest> requests{logged_generation_of(text_of_any_model(150, 1), 3),
                                              embedding_of(text_of_any_model(200, 5)),
                                              logged_generation_of(text_of_any_model(64, 9), 3)};
  for (const std::string& model : models) {
    CAPTURE(model);
    const bool has_latents =
        model.find("deepseekv3") != std::string::npos || model.find("kimi") != std::string::npos;
    const std::vector<Answer> computed = run_ranks(model, {}, requests).answers;
    const std::vector<Placement> all = placements(has_latents);
    for (size_t i = 0; i < all.size(); ++i) {
      const Placement& first = all[i];
      const Placement& second = all[(i + 1) % all.size()];
      CAPTURE(first.name);
      TemporaryFolder folder;
      const auto run = [&](const Placement& placement) {
        Setup setup = placement.setup;
        setup.cache_folders = {folder.path().string()};
        return run_ranks(model, setup, requests).answers;
      };
      // Computed and saved; loaded by the same placement, and by another.
      const auto saved = run(first), loaded = run(first), elsewhere = run(second);
      for (size_t k = 0; k < requests.size(); ++k) {
        CAPTURE(k);
        CHECK(has_same_bits(saved[k], computed[k]));
        CHECK(has_same_bits(loaded[k], computed[k]));
        CHECK(has_same_bits(elsewhere[k], computed[k]));
      }
      CHECK(saved[0].cached_tokens == 0);
      for (const auto& answers : {loaded, elsewhere}) {
        CHECK(answers[0].cached_tokens == 128);
        CHECK(answers[1].cached_tokens == 192);
        CHECK(answers[2].cached_tokens == 0);  // the last token of a prompt is fed
      }
    }
  }
}

TEST_CASE("a chain of placements: two ranks of uneven shares, one rank, two stages, three ranks") {
  TemporaryFolder folder;
  // Each answer completes a page, and its continuation ends short of the next one.
  constexpr int kNewTokens = 5;
  std::vector<int32_t> prompt = story_text(124, 1);
  int cached = 0;
  for (const Setup& placement :
       {Setup{.shares = {3, 1}}, Setup{}, Setup{.shares = {1, 1}, .stages = 2},
        Setup{.shares = {1, 1, 1}}, Setup{.shares = {1, 3}, .threads = 2}}) {
    const GenerateRequest request = logged_generation_of(prompt, kNewTokens);
    Setup setup = placement;
    setup.cache_folders = {folder.path().string()};
    const Answer answer = run_ranks(kStories, setup, {request}).answers[0];
    CHECK(has_same_bits(answer, run_ranks(kStories, {}, {request}).answers[0]));
    CHECK(answer.cached_tokens == cached);
    cached = static_cast<int>(prompt.size()) + kNewTokens - 1;
    CHECK(cached % kPagePositions == 0);
    prompt.insert(prompt.end(), answer.tokens.begin(), answer.tokens.end());
    const std::vector<int32_t> more =
        story_text(kPagePositions - kNewTokens, static_cast<int>(prompt.size()));
    prompt.insert(prompt.end(), more.begin(), more.end());
  }
}

TEST_CASE("options that change bits use separate pages") {
  TemporaryFolder folder;
  const std::string model = golden_folder("llama3-q4-g64");
  const GenerateRequest request = logged_generation_of(story_text(150, 1), 20);
  for (int round = 0; round < 2; ++round) {
    for (const Setup& options :
         {Setup{}, Setup{.exact = true}, Setup{.kv = KvKind::kF32}, Setup{.kv = KvKind::kBF16},
          Setup{.kv = KvKind::kF16}, Setup{.kv = KvKind::kQ8}}) {
      const Answer computed = run_ranks(model, options, {request}).answers[0];
      Setup setup = options;
      setup.cache_folders = {folder.path().string()};
      const Answer answer = run_ranks(model, setup, {request}).answers[0];
      CHECK(has_same_bits(answer, computed));
      const bool was_there = round > 0 || options.kv == kKvDefault;
      CHECK(answer.cached_tokens == (was_there ? 128 : 0));
    }
  }
}

TEST_CASE("pages of each kind of keys and values move between placements and the disk") {
  const GenerateRequest request = logged_generation_of(text_of_any_model(200, 1), 4);
  for (const std::string& model : {std::string(kStories), golden_folder("deepseekv3-bf16"),
                                   golden_folder("glmdsa-shared-bf16")}) {
    CAPTURE(model);
    for (const KvKind kv : {KvKind::kF32, KvKind::kBF16, KvKind::kF16, KvKind::kQ8}) {
      CAPTURE(kv_kind_name(kv));
      const Answer computed = run_ranks(model, {.kv = kv}, {request}).answers[0];
      TemporaryFolder folder;
      int cached = 0;
      for (const Setup& placement :
           {Setup{.shares = {3, 1}}, Setup{}, Setup{.shares = {1, 1}, .stages = 2},
            Setup{.shares = {1, 2, 1}, .threads = 2}, Setup{.shares = {1, 1, 1, 1}}}) {
        Setup setup = placement;
        setup.kv = kv;
        setup.cache_folders = {folder.path().string()};
        const Answer answer = run_ranks(model, setup, {request}).answers[0];
        CHECK(has_same_bits(answer, computed));
        CHECK(answer.cached_tokens == cached);
        cached = 192;
      }
    }
  }
}

TEST_CASE("pages evicted from a small pool are loaded from the disk") {
  const auto request_of = [](int begin) { return logged_generation_of(story_text(330, begin), 5); };
  std::map<int, Answer> computed;
  for (const int begin : {1, 100, 200}) {
    computed[begin] = run_ranks(kStories, {}, {request_of(begin)}).answers[0];
  }
  const std::vector<int> begins{1, 100, 1, 100, 200, 1};
  std::vector<GenerateRequest> requests;
  for (const int begin : begins) requests.push_back(request_of(begin));
  for (const Setup& placement :
       {Setup{}, Setup{.shares = {2, 1}}, Setup{.shares = {1, 1}, .stages = 2}}) {
    TemporaryFolder folder;
    Setup setup = placement;
    setup.sequences_max = 1;  // 8 pages of the context
    setup.cache_folders = {folder.path().string()};
    const std::vector<Answer> answers = run_ranks(kStories, setup, requests).answers;
    int cached = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      CHECK(has_same_bits(answers[i], computed[begins[i]]));
      cached += answers[i].cached_tokens;
    }
    CHECK(cached > 0);  // none of these prompts was entirely in memory
    for (const int begin : {1, 200}) {
      const Answer later = run_ranks(kStories, setup, {request_of(begin)}).answers[0];
      CHECK(has_same_bits(later, computed[begin]));
    }
  }
}

TEST_CASE("if one rank cannot load a page all ranks compute it, and it is saved again") {
  const GenerateRequest request = logged_generation_of(story_text(300, 1), 3);
  const Answer computed = run_ranks(kStories, {}, {request}).answers[0];
  for (const int stages : {1, 2}) {
    for (const bool is_cut_short : {false, true}) {
      TemporaryFolder first, second;
      const Setup setup{.shares = {1, 1},
                        .stages = stages,
                        .cache_folders = {first.path().string(), second.path().string()}};
      const auto run = [&] { return run_ranks(kStories, setup, {request}).answers[0]; };
      CHECK(has_same_bits(run(), computed));
      const std::vector<fs::path> files = files_of(second.path());
      REQUIRE(files.size() == 4);
      if (is_cut_short) {
        fs::resize_file(files[2], fs::file_size(files[2]) - 1);
      } else {
        fs::remove(files[2]);
      }
      const Answer broken = run();
      CHECK(has_same_bits(broken, computed));
      CHECK(broken.cached_tokens < 256);
      const Answer whole = run();
      CHECK(has_same_bits(whole, computed));
      CHECK(whole.cached_tokens == 256);
    }
  }
}

TEST_CASE("if one rank has no store everything is computed") {
  TemporaryFolder folder;
  const GenerateRequest request = logged_generation_of(story_text(300, 1), 3);
  const Answer computed = run_ranks(kStories, {}, {request}).answers[0];
  for (const int stages : {1, 2}) {
    for (const bool leads : {false, true}) {
      const std::string own = folder.path().string();
      const Setup setup{.shares = {1, 1},
                        .stages = stages,
                        .cache_folders = leads ? std::vector<std::string>{own, ""}
                                               : std::vector<std::string>{"", own}};
      for (int process = 0; process < 2; ++process) {
        const Answer answer = run_ranks(kStories, setup, {request}).answers[0];
        CHECK(has_same_bits(answer, computed));
        CHECK(answer.cached_tokens == 0);
      }
    }
  }
}

TEST_CASE("a folder that cannot be made does not prevent serving") {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "no folder";
  const GenerateRequest request = logged_generation_of(story_text(100, 1), 10);
  const Setup setup{.cache_folders = {(folder.path() / "file" / "cache").string()}};
  CHECK(has_same_bits(run_ranks(kStories, setup, {request}).answers[0],
                      run_ranks(kStories, {}, {request}).answers[0]));
}

namespace {

// Requests a text that is on the disk again and again while another one is generated, and cancels
// every second one of these requests.
class HalfCanceller final : public EventReader {
 public:
  HalfCanceller(Engine& engine, const GenerateRequest& request)
      : engine_(engine), request_(request) {}

  void on_token(uint64_t id, int32_t token) override {
    answers[id].tokens.push_back(token);
    if (id != 0) return;
    if (std::exchange(may_cancel_, !may_cancel_)) return engine_.cancel(asked_);
    engine_.submit(++asked_, request_);
    ++open_;
  }
  void on_logprobs(uint64_t id, const std::vector<TokenLogprob>& logprobs) override {
    answers[id].logprobs.push_back(logprobs);
  }
  void on_end(uint64_t id, FinishReason) override { end(id, "end"); }
  void on_error(uint64_t id, const Error&) override { end(id, "cancelled"); }

  std::map<uint64_t, Answer> answers;
  std::map<uint64_t, std::string> ends;

 private:
  void end(uint64_t id, const char* how) {
    ends[id] = how;
    if (--open_ == 0) engine_.stop();
  }

  Engine& engine_;
  GenerateRequest request_;
  uint64_t asked_ = 0;
  bool may_cancel_ = false;
  int open_ = 1;
};

}  // namespace

TEST_CASE("requests that are cancelled while their pages are loaded disturb no other request") {
  const GenerateRequest told = logged_generation_of(story_text(20, 50), 60);
  const GenerateRequest request = logged_generation_of(story_text(400, 1), 3);
  const Answer expected = run_ranks(kStories, {}, {told}).answers[0];
  const Answer computed = run_ranks(kStories, {}, {request}).answers[0];
  for (const Setup& placement :
       {Setup{}, Setup{.shares = {2, 1}}, Setup{.shares = {1, 1}, .stages = 2}}) {
    TemporaryFolder folder;
    Setup setup = placement;
    setup.sequences_max = 3;
    setup.cache_folders = {folder.path().string()};
    run_ranks(kStories, setup, {request});
    std::map<uint64_t, Answer> answers;
    std::map<uint64_t, std::string> ends;
    run_ranks_with(kStories, setup, [&](Engine& engine, int rank) {
      HalfCanceller events(engine, request);
      if (rank == 0) engine.submit(0, told);
      const Status status = engine.run(events);
      if (rank == 0) answers = events.answers, ends = events.ends;
      return status;
    });
    CHECK(has_same_bits(answers[0], expected));
    CHECK(ends.size() == 31);
    for (const auto& [id, end] : ends) {
      if (id != 0 && end == "end") CHECK(has_same_bits(answers[id], computed));
    }
  }
}

namespace {

bool wait_for_files(const fs::path& folder, size_t count) {
  return comes_true([&] { return files_of(folder).size() >= count; });
}

}  // namespace

TEST_CASE("an idle engine saves its pages, and its next epoch loads them") {
  TemporaryFolder folder;
  const GenerateRequest request = logged_generation_of(story_text(300, 1), 10);
  const Answer computed = run_ranks(kStories, {}, {request}).answers[0];
  EngineOfEpochs engine(kStories, folder.path());
  for (const int cached : {0, 256, 256}) {
    engine.run_epoch([&](Engine& running, Waiting& events) {
      running.submit(1, request);
      const Answer answer = events.wait();
      CHECK(wait_for_files(folder.path(), 4));
      running.submit(2, request);
      const Answer again = events.wait();
      CHECK(has_same_bits(answer, computed));
      CHECK(has_same_bits(again, computed));
      CHECK(answer.cached_tokens == cached);
      CHECK(again.cached_tokens == 256);
    });
  }
}
