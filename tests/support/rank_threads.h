// Runs an engine on each of several threads as ranks, connected by real links, and collects rank
// 0's reports.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/machine/machine.h"
#include "base/threads/wait.h"
#include "engine/engine.h"
#include "kernels/isa.h"
#include "support/event_reader.h"
#include "transport/form/local_links.h"

namespace lockstep {

// How a model is run: everything that must not change a bit of the answer.
// For a rank that is busy: a software GPU compiles its kernels, several times slower under a
// sanitizer.
inline constexpr std::chrono::seconds kFrameWait{120};

struct Setup {
  std::vector<double> shares{1};
  int stages = 1;
  LinkKind link = LinkKind::kShm;
  Topology topology = Topology::kMesh;
  int rails = 1;
  int threads = 1;
  std::string device = "cpu";
  std::string isa;  // empty: the best
  int batch_tokens_max = kBatchTokensDefault;
  bool exact = false;
  std::optional<KvKind> kv{};
  int bits = 0;
  LatentCut latent_cut = LatentCut::kAuto;
  Overlap overlap = Overlap::kAuto;
  int sequences_max = kSequencesDefault;
  bool ngrams_on_disk = false;
  bool draft_layer = false;
  std::string draft_model{};
  int layer_guesses = 0;
  std::vector<std::string> cache_folders{};  // one for all ranks, or one for each; empty: no cache
  uint64_t cache_bytes = uint64_t{1} << 30;
};

struct Answer {
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> draft_logits{};
  std::vector<std::vector<TokenLogprob>> logprobs{};  // of each token, if requested
  int cached_tokens = -1;                             // of the prompt, as reported at the start
  std::string error;
  FinishReason reason = FinishReason::kStop;
};

inline bool same_bits(const Answer& a, const Answer& b) {
  if (a.logits.size() != b.logits.size() || a.tokens != b.tokens) return false;
  for (size_t i = 0; i < a.logits.size(); ++i) {
    if (a.logits[i].size() != b.logits[i].size()) return false;
    if (std::memcmp(a.logits[i].data(), b.logits[i].data(), a.logits[i].size() * 4) != 0) {
      return false;
    }
  }
  return true;
}

struct Outcome {
  std::vector<Answer> answers;      // one for each request
  std::vector<LoadReport> reports;  // (ranks)
};

class Collector final : public EventReader {
 public:
  Collector(size_t requests, Engine& engine) : engine_(engine), answers_(requests) {}
  void on_start(uint64_t request, int cached_tokens) override {
    answers_[request].cached_tokens = cached_tokens;
  }
  void on_token(uint64_t request, int32_t token) override {
    answers_[request].tokens.push_back(token);
  }
  void on_logprobs(uint64_t request, const std::vector<TokenLogprob>& logprobs) override {
    answers_[request].logprobs.push_back(logprobs);
  }
  void on_row(uint64_t request, const std::vector<float>& row) override {
    answers_[request].logits.push_back(row);
  }
  void on_draft_row(uint64_t request, const std::vector<float>& row) override {
    answers_[request].draft_logits.push_back(row);
  }
  void on_end(uint64_t request, FinishReason reason) override {
    answers_[request].reason = reason;
    end_one();
  }
  void on_error(uint64_t request, const Error& error) override {
    answers_[request].error = error.message;
    end_one();
  }
  std::vector<Answer> take() { return std::move(answers_); }

 private:
  void end_one() {
    if (++ended_ == answers_.size()) engine_.stop();
  }

  Engine& engine_;
  std::vector<Answer> answers_;
  size_t ended_ = 0;
};

inline const KernelTable* kernels_named(const std::string& name) {
  const auto all = available_kernels();
  if (name.empty()) return all.back();
  for (const KernelTable* table : all) {
    if (name == table->name) return table;
  }
  return nullptr;
}

inline LinkOptions link_options_of(const Setup& setup) {
  return {.kind = setup.link, .topology = setup.topology, .rails = setup.rails};
}

inline EngineOptions engine_options_of(const std::string& model, const Setup& setup,
                                       size_t rank = 0) {
  EngineOptions options;
  options.spec = {.model = model,
                  .shares = setup.shares,
                  .link = {.kind = setup.link, .stages = setup.stages},
                  .threads = setup.threads,
                  .sequences_max = setup.sequences_max,
                  .batch_tokens_max = setup.batch_tokens_max,
                  .device = setup.device,
                  .exact = setup.exact,
                  .kv = setup.kv,
                  .bits = setup.bits,
                  .ngrams_on_disk = setup.ngrams_on_disk,
                  .draft_layer = setup.draft_layer,
                  .draft_model = setup.draft_model};
  options.latent_cut = setup.latent_cut;
  options.overlap = setup.overlap;
  options.layer_guesses = setup.layer_guesses;
  if (!setup.cache_folders.empty()) {
    options.cache_folder = setup.cache_folders[rank % setup.cache_folders.size()];
    options.cache_disk_bytes = options.cache_folder.empty() ? 0 : setup.cache_bytes;
  }
  options.kernels = kernels_named(setup.isa);
  return options;
}

// Over existing links: links[i][j] is rank i's to rank j. `run` gets each rank's engine and number,
// in a thread per rank. Returns each rank's error, empty if it had none.
template <class Run>
std::vector<std::string> try_ranks_with(LocalLinks links, const std::string& model,
                                        const Setup& setup, Run run) {
  const int size = static_cast<int>(setup.shares.size());
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::atomic<bool> cancelled{false};  // one rank's failure ends the others
  const auto run_rank = [&](int rank) -> Status {
    Group group = TRY(Group::form({.rank = rank,
                                   .links = std::move(links[static_cast<size_t>(rank)]),
                                   .timeout = kFrameWait,
                                   .cancelled = &cancelled,
                                   .kernels = kernels_named(setup.isa)}));
    const std::unique_ptr<Engine> engine = TRY(
        load_engine(engine_options_of(model, setup, static_cast<size_t>(rank)), std::move(group)));
    return run(*engine, rank);
  };
  // ctest runs another test at the same time, which would have a turn of the scheduler at each
  // yield. Naps of many ranks would only take time from the ranks that compute.
  allow_naps(size * setup.threads <= 2 * available_core_count());
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      const Status status = run_rank(rank);
      if (status.ok()) return;
      errors[static_cast<size_t>(rank)] = status.error().message;
      cancelled = true;
    });
  }
  for (auto& rank : ranks) rank.join();
  allow_naps(false);
  return errors;
}

// None of the ranks may have an error.
template <class Run>
void run_ranks_with(LocalLinks links, const std::string& model, const Setup& setup, Run run) {
  const auto errors = try_ranks_with(std::move(links), model, setup, std::move(run));
  for (const std::string& error : errors) REQUIRE_MESSAGE(error.empty(), error);
}

inline LocalLinks links_of(const Setup& setup) {
  auto links = open_local_links(link_options_of(setup), static_cast<int>(setup.shares.size()));
  REQUIRE_MESSAGE(links.ok(), links.error().message);
  return std::move(links.value());
}

template <class Run>
void run_ranks_with(const std::string& model, const Setup& setup, Run run) {
  run_ranks_with(links_of(setup), model, setup, std::move(run));
}

// Request i has the id i.
inline void submit_all(Engine& engine, const std::vector<GenerateRequest>& requests) {
  for (size_t i = 0; i < requests.size(); ++i) engine.submit(i, requests[i]);
}

// All requests are submitted before the engine starts, so they share steps.
inline Outcome run_ranks_over(LocalLinks links, const std::string& model, const Setup& setup,
                              const std::vector<GenerateRequest>& requests) {
  Outcome outcome;
  outcome.reports.resize(setup.shares.size());
  run_ranks_with(std::move(links), model, setup, [&](Engine& engine, int rank) {
    outcome.reports[static_cast<size_t>(rank)] = engine.report();
    Collector events(requests.size(), engine);
    if (rank == 0) submit_all(engine, requests);
    const Status status = engine.run(events);
    if (rank == 0) outcome.answers = events.take();
    return status;
  });
  return outcome;
}

inline Outcome run_ranks(const std::string& model, const Setup& setup,
                         const std::vector<GenerateRequest>& requests) {
  return run_ranks_over(links_of(setup), model, setup, requests);
}

}  // namespace lockstep
