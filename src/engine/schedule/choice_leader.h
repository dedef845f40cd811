// ChoiceLeader: rank 0's knowledge of how the tokens of each request are chosen. It has grammars
// made before their requests are scheduled, gives each request a slot with the first step that
// chooses a token of it, and sends the sampling ranks what they need (choice_orders.h) with that
// step. The thread of rank 0's engine uses it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/choices/grammar_cache.h"
#include "engine/engine.h"
#include "engine/schedule/step.h"

namespace lockstep {

class ChoiceLeader {
 public:
  // A request that can be scheduled, or has failed.
  struct ReadyRequest {
    uint64_t id = 0;
    GenerateRequest request;
    Status status = Ok{};
  };

  // `cache` must outlive it: this rank's own, which makes the grammars and is checked first.
  ChoiceLeader(GrammarCache& cache, int vocab_size);

  // Returns a request that was refused or that can be scheduled at once (most can); the others wait
  // for their grammar.
  std::optional<ReadyRequest> submit(uint64_t id, GenerateRequest request);
  // The requests whose grammar is ready, in order.
  std::vector<ReadyRequest> take_ready();
  bool is_waiting() const { return !waiting_.empty(); }
  // True if the request was waiting here; it is removed.
  bool cancel(uint64_t id);

  // Gives the rows of a planned step their slots, and adds the orders the ranks need to the step.
  void attach_slots(Step& step);
  // The request has ended, for whatever reason. Also for unknown requests.
  void forget(uint64_t id);

 private:
  struct Grammar {
    std::string constraint;
    std::vector<int32_t> end_tokens;
    int uses = 0;  // requests that wait for it or run with it
    uint64_t last_use = 0;
  };
  struct Sequence {
    int32_t grammar = -1;
    int32_t slot = -1;
    ChoiceSetup setup;  // until it is sent
  };
  struct Waiting {
    uint64_t id;
    GenerateRequest request;
    int32_t grammar = -1;  // -1: all numbers are in use
  };

  int32_t find_grammar(const GenerateRequest& request);
  void use_no_more(int32_t grammar);
  void remember(uint64_t id, const GenerateRequest& request, int32_t grammar);
  int32_t free_slot();

  GrammarCache& cache_;
  const int vocab_size_;
  std::vector<Grammar> grammars_;  // by number
  uint64_t uses_ = 0;
  std::deque<Waiting> waiting_;
  std::map<uint64_t, Sequence> sequences_;  // scheduled and not ended
  std::vector<bool> slots_;                 // in use
  std::vector<int32_t> released_;           // slots; not sent yet
  std::vector<int32_t> untold_;             // grammars; not sent yet
};

}  // namespace lockstep
