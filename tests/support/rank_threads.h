// Runs an engine on each of several threads as ranks, joined by real links, and collects what rank
// 0 reports.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "kernels/isa.h"
#include "transport/local_links.h"

namespace lockstep {

// How a model is run: everything that must not change a bit of the answer.
struct Setup {
  std::vector<double> shares{1};
  int stages = 1;
  LinkKind link = LinkKind::kShm;
  Topology topology = Topology::kMesh;
  int rails = 1;
  int threads = 1;
  std::string device = "cpu";
  std::string isa;  // empty: the best
  int batch_tokens_max = 512;
  bool exact = false;
  int bits = 0;
  LatentCut latent_cut = LatentCut::kAuto;
  Overlap overlap = Overlap::kAuto;
};

struct Answer {
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> tokens;
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

class Collector final : public EngineEvents {
 public:
  Collector(size_t requests, Engine& engine) : engine_(engine), answers_(requests) {}
  void on_token(uint64_t request, int32_t token) override {
    answers_[request].tokens.push_back(token);
  }
  void on_logits(uint64_t request, std::span<const float> row) override {
    answers_[request].logits.emplace_back(row.begin(), row.end());
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

// Over links that are there: links[i][j] is rank i's to rank j. Request i has the id i. All are
// submitted before the engine starts, so they share steps.
inline Outcome run_ranks_over(LocalLinks links, const std::string& model, const Setup& setup,
                              const std::vector<GenerateRequest>& requests) {
  const int size = static_cast<int>(setup.shares.size());
  Outcome outcome;
  outcome.reports.resize(static_cast<size_t>(size));
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::atomic<bool> cancelled{false};  // one rank's failure ends the others
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto r = static_cast<size_t>(rank);
      auto group = Group::form({.rank = rank,
                                .links = std::move(links[r]),
                                .timeout = std::chrono::seconds(20),
                                .cancelled = &cancelled,
                                .kernels = kernels_named(setup.isa)});
      if (!group.ok()) {
        errors[r] = group.error().message;
        cancelled = true;
        return;
      }
      auto engine = load_engine({.model = model,
                                 .shares = setup.shares,
                                 .stages = setup.stages,
                                 .threads = setup.threads,
                                 .batch_tokens_max = setup.batch_tokens_max,
                                 .device = setup.device,
                                 .exact = setup.exact,
                                 .bits = setup.bits,
                                 .link = setup.link,
                                 .latent_cut = setup.latent_cut,
                                 .overlap = setup.overlap,
                                 .kernels = kernels_named(setup.isa)},
                                std::move(group.value()));
      if (!engine.ok()) {
        errors[r] = engine.error().message;
        cancelled = true;
        return;
      }
      outcome.reports[r] = engine.value()->report();
      Collector events(requests.size(), *engine.value());
      if (rank == 0) {
        for (size_t i = 0; i < requests.size(); ++i) engine.value()->submit(i, requests[i]);
      }
      const Status status = engine.value()->run(events);
      if (!status.ok()) {
        errors[r] = status.error().message;
        cancelled = true;
      }
      if (rank == 0) outcome.answers = events.take();
    });
  }
  for (auto& rank : ranks) rank.join();
  for (const std::string& error : errors) REQUIRE_MESSAGE(error.empty(), error);
  return outcome;
}

inline Outcome run_ranks(const std::string& model, const Setup& setup,
                         const std::vector<GenerateRequest>& requests) {
  auto links = open_local_links(link_options_of(setup), static_cast<int>(setup.shares.size()));
  REQUIRE_MESSAGE(links.ok(), links.error().message);
  return run_ranks_over(std::move(links.value()), model, setup, requests);
}

}  // namespace lockstep
