// Models with recurrent layers whose pages and states outlive eviction, the epoch and the process:
// a conversation goes on from its last page on disk, on any placement, with the bits of one that is
// computed from its first token.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "engine/spill.h"
#include "support/comes_true.h"
#include "support/golden.h"
#include "support/joined.h"
#include "support/spoiled_file.h"
#include "support/temporary_folder.h"
#include "transport/unformed_link.h"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> recurrent_models() {
  return {golden_folder("qwen3next-bf16"), golden_folder("qwen35-q4-g64"),
          golden_folder("kimilinear-bf16"), golden_folder("glm5next-bf16")};
}

std::vector<fs::path> state_files_of(const fs::path& folder) {
  std::vector<fs::path> files = files_of(folder);
  std::erase_if(files, [](const fs::path& path) { return path.extension() != ".state"; });
  return files;
}

Answer ask(const std::string& model, Setup setup, const GenerateRequest& request,
           std::vector<std::string> cache_folders) {
  setup.cache_folders = std::move(cache_folders);
  return run_ranks(model, setup, {request}).answers[0];
}

}  // namespace

TEST_CASE("a conversation resumes from its states on disk in every next process and placement") {
  // Another cut of heads and layers each time, ranks without heads, and back.
  const std::vector<Setup> placements{
      {},
      {.shares = {1, 2}},
      {.shares = {1, 1, 1}},
      {.shares = {1, 1}, .stages = 2},
      {.shares = {3, 1}, .device = "delayed", .batch_tokens_max = 24},
      {.shares = {1, 1}, .link = LinkKind::kTcp, .threads = 2},
      {.shares = {2, 1, 1, 1}, .stages = 2},
      {},
  };
  for (const std::string& model : recurrent_models()) {
    CAPTURE(model);
    TemporaryFolder folder;
    std::vector<int32_t> prompt = text_of_any_model(100, 1);
    int known = 0;
    for (size_t turn = 0; turn < placements.size(); ++turn) {
      CAPTURE(turn);
      const GenerateRequest request = logged_generation_of(prompt, 12);
      const Answer answer = ask(model, placements[turn], request, {folder.path().string()});
      CHECK(has_same_bits(answer, run_ranks(model, {}, {request}).answers[0]));
      CHECK(answer.cached_tokens == known / kPagePositions * kPagePositions);
      known = static_cast<int>(prompt.size() + answer.tokens.size()) - 1;
      prompt = joined(joined(prompt, answer.tokens), text_of_any_model(30, 7));
    }
    CHECK(!state_files_of(folder.path()).empty());
  }
}

TEST_CASE("what one placement saved of a prompt every other one loads") {
  const std::vector<Setup> placements{
      {},
      {.shares = {3, 1}},
      {.shares = {1, 1, 1, 1}},
      {.shares = {1, 1}, .stages = 2},
      {.shares = {1, 2, 1}, .device = "delayed"},
  };
  for (const std::string& model : recurrent_models()) {
    CAPTURE(model);
    const GenerateRequest request = logged_generation_of(text_of_any_model(200, 1), 4);
    const Answer computed = run_ranks(model, {}, {request}).answers[0];
    for (size_t i = 0; i < placements.size(); ++i) {
      CAPTURE(i);
      TemporaryFolder folder;
      const std::vector<std::string> folders{folder.path().string()};
      const Answer saved = ask(model, placements[i], request, folders);
      CHECK(has_same_bits(saved, computed));
      CHECK(saved.cached_tokens == 0);
      for (const size_t next : {i, (i + 1) % placements.size(), (i + 2) % placements.size()}) {
        const Answer loaded = ask(model, placements[next], request, folders);
        CHECK(has_same_bits(loaded, computed));
        CHECK(loaded.cached_tokens == 192);
      }
    }
  }
}

TEST_CASE("what one rank lacks or finds damaged is computed by all, and saved again") {
  for (const std::string& model : recurrent_models()) {
    CAPTURE(model);
    const GenerateRequest first = logged_generation_of(text_of_any_model(100, 1), 1);
    const GenerateRequest request = logged_generation_of(text_of_any_model(300, 1), 3);
    const Answer computed = run_ranks(model, {}, {request}).answers[0];
    for (const int stages : {1, 2}) {
      for (const int how : {0, 1, 2, 3, 4}) {
        CAPTURE(stages);
        CAPTURE(how);
        TemporaryFolder own, other;
        const std::vector<std::string> folders{own.path().string(), other.path().string()};
        const Setup setup{.shares = {1, 1}, .stages = stages};
        ask(model, setup, first, folders);
        CHECK(ask(model, setup, request, folders).cached_tokens == 64);
        // Both states of the second rank, or of the first one if only that has a part of them; or
        // the second rank's pages, of which the first one may have no part.
        const bool has_own = !state_files_of(other.path()).empty();
        const fs::path& place = has_own ? other.path() : own.path();
        for (const fs::path& file : state_files_of(place)) {
          if (how == 0) fs::remove(file);
          if (how == 1) spoil_last_byte(file);
          if (how == 2) fs::resize_file(file, fs::file_size(file) - 1);
          if (how == 3) fs::resize_file(file, 0);
        }
        for (const fs::path& file : files_of(other.path())) {
          if (how == 4 && file.extension() != ".state") fs::remove(file);
        }
        const Answer broken = ask(model, setup, request, folders);
        CHECK(has_same_bits(broken, computed));
        CHECK(broken.cached_tokens == 0);
        const Answer whole = ask(model, setup, request, folders);
        CHECK(has_same_bits(whole, computed));
        CHECK(whole.cached_tokens == 256);
      }
    }
  }
}

TEST_CASE("with ranks that have no heads, states are kept if rank 0 has a part of them") {
  // Two key heads of the delta rule in the first model, four in the second.
  for (const auto& [name, cached] :
       {std::pair("qwen3next-bf16", 0), std::pair("kimilinear-bf16", 128)}) {
    const std::string model = golden_folder(name);
    CAPTURE(model);
    TemporaryFolder folder;
    const std::vector<std::string> folders{folder.path().string()};
    const GenerateRequest request = logged_generation_of(text_of_any_model(150, 1), 3);
    const Answer computed = run_ranks(model, {}, {request}).answers[0];
    const Setup setup{.shares = std::vector<double>(8, 1.0)};
    CHECK(has_same_bits(ask(model, setup, request, folders), computed));
    CHECK(state_files_of(folder.path()).empty() == (cached == 0));
    const Answer again = ask(model, setup, request, folders);
    CHECK(has_same_bits(again, computed));
    CHECK(again.cached_tokens == cached);
  }
}

TEST_CASE("a sequence whose last state is lost resumes from the one before") {
  const std::string model = golden_folder("qwen3next-bf16");
  TemporaryFolder folder;
  const std::vector<std::string> folders{folder.path().string()};
  ask(model, {}, logged_generation_of(text_of_any_model(150, 1), 1), folders);
  const std::vector<fs::path> before = state_files_of(folder.path());
  REQUIRE(before.size() == 1);
  const GenerateRequest request = logged_generation_of(text_of_any_model(300, 1), 3);
  ask(model, {}, request, folders);
  for (const fs::path& file : state_files_of(folder.path())) {
    if (file != before[0]) spoil_last_byte(file);
  }
  const Answer answer = ask(model, {.shares = {1, 1}}, request, folders);
  CHECK(answer.cached_tokens == 128);
  CHECK(has_same_bits(answer, run_ranks(model, {}, {request}).answers[0]));
}

TEST_CASE("states evicted from memory are loaded from the disk by the same process") {
  constexpr int kTexts = 14;  // there are ten states
  for (const std::string& model : recurrent_models()) {
    CAPTURE(model);
    std::vector<GenerateRequest> requests;
    for (int i = 0; i < kTexts + 3; ++i) {
      requests.push_back(logged_generation_of(text_of_any_model(150, 1 + 9 * (i % kTexts)), 3));
    }
    std::vector<Answer> computed;
    for (int i = 0; i < kTexts; ++i) {
      computed.push_back(run_ranks(model, {}, {requests[static_cast<size_t>(i)]}).answers[0]);
    }
    for (const Setup& placement :
         {Setup{}, Setup{.shares = {2, 1}}, Setup{.shares = {1, 1}, .stages = 2}}) {
      TemporaryFolder folder;
      Setup setup = placement;
      setup.sequences_max = 1;
      setup.cache_folders = {folder.path().string()};
      const std::vector<Answer> answers = run_ranks(model, setup, requests).answers;
      int cached = 0;
      for (size_t i = 0; i < answers.size(); ++i) {
        CHECK(has_same_bits(answers[i], computed[i % kTexts]));
        if (i >= kTexts) cached += answers[i].cached_tokens;
      }
      CHECK(cached > 0);
    }
  }
}

TEST_CASE("in a folder at its limit states and pages come and go, and answers stay the same") {
  const std::string model = golden_folder("kimilinear-bf16");
  TemporaryFolder folder;
  Setup setup{.shares = {1, 1}, .cache_folders = {folder.path().string()}};
  setup.cache_bytes = uint64_t{256} << 10;
  for (int i = 0; i < 8; ++i) {
    const GenerateRequest request =
        logged_generation_of(text_of_any_model(280, 1 + 20 * (i % 5)), 3);
    const Answer answer = run_ranks(model, setup, {request}).answers[0];
    CHECK(has_same_bits(answer, run_ranks(model, {}, {request}).answers[0]));
    uint64_t bytes = 0;
    for (const fs::path& file : files_of(folder.path())) bytes += fs::file_size(file);
    CHECK(bytes > 0);
    CHECK(bytes <= setup.cache_bytes);
  }
  // The latest text is still there.
  const GenerateRequest last = logged_generation_of(text_of_any_model(280, 1 + 20 * 2), 3);
  CHECK(run_ranks(model, setup, {last}).answers[0].cached_tokens == 256);
}

TEST_CASE("a state that the folder's limit excludes leaves everything to be computed") {
  const std::string model = golden_folder("qwen3next-bf16");
  TemporaryFolder folder;
  Setup setup{.cache_folders = {folder.path().string()}};
  setup.cache_bytes = 8192;
  const GenerateRequest request = logged_generation_of(text_of_any_model(150, 1), 3);
  const Answer computed = run_ranks(model, {}, {request}).answers[0];
  for (int process = 0; process < 2; ++process) {
    const Answer answer = run_ranks(model, setup, {request}).answers[0];
    CHECK(has_same_bits(answer, computed));
    CHECK(answer.cached_tokens == 0);
  }
  CHECK(state_files_of(folder.path()).empty());
}

TEST_CASE("with a draft layer a conversation resumes with its pages and states too") {
  const std::string model = golden_folder("mtp-qwen35-bf16");
  TemporaryFolder folder;
  std::vector<int32_t> prompt = text_of_any_model(150, 1);
  int known = 0;
  for (const std::vector<double>& shares :
       {std::vector<double>{1}, std::vector<double>{1, 2}, std::vector<double>{1}}) {
    const GenerateRequest request = logged_generation_of(prompt, 40);
    const Setup setup{.shares = shares, .draft_layer = true, .layer_guesses = 2};
    const Answer answer = ask(model, setup, request, {folder.path().string()});
    CHECK(has_same_bits(answer, run_ranks(model, {}, {request}).answers[0]));
    CHECK(answer.cached_tokens == known / kPagePositions * kPagePositions);
    known = static_cast<int>(prompt.size() + answer.tokens.size()) - 1;
    prompt = joined(joined(prompt, answer.tokens), text_of_any_model(30, 7));
  }
}

TEST_CASE("an idle engine saves its states, and its next epoch resumes from them") {
  const std::string model = golden_folder("glm5next-bf16");
  TemporaryFolder folder;
  const GenerateRequest request = logged_generation_of(text_of_any_model(300, 1), 10);
  const Answer computed = run_ranks(model, {}, {request}).answers[0];
  EngineOfEpochs engine(model, folder.path());
  for (const int cached : {0, 256, 256}) {
    engine.run_epoch([&](Engine& running, Waiting& events) {
      running.submit(1, request);
      const Answer answer = events.wait();
      CHECK(comes_true([&] { return state_files_of(folder.path()).size() == 1; }));
      CHECK(has_same_bits(answer, computed));
      CHECK(answer.cached_tokens == cached);
    });
  }
}
