// Runs requests over the ranks of a group and counts the guesses.
#pragma once

#include <string>
#include <vector>

#include "support/rank_threads.h"

namespace lockstep {

struct Drafted {
  std::vector<Answer> answers;
  DraftCounts counts;
};

inline Drafted run_and_count(const std::string& model, const Setup& setup,
                             const std::vector<GenerateRequest>& requests) {
  Drafted drafted;
  run_ranks_with(model, setup, [&](Engine& engine, int rank) {
    Collector events(requests.size(), engine);
    if (rank == 0) submit_all(engine, requests);
    const Status status = engine.run(events);
    if (rank != 0) return status;
    drafted.answers = events.take();
    drafted.counts = engine.draft_counts();
    return status;
  });
  return drafted;
}

}  // namespace lockstep
