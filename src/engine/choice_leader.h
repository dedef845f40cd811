// ChoiceLeader: what rank 0 knows of requests whose choices depend on more than their options. It
// has their grammars made before they are scheduled, gives running ones a slot, and tells the ranks
// that sample what they must know (choice_orders.h), with the step that needs it. Plain requests
// pass through it untouched. The thread of rank 0's engine uses it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/grammar_shelf.h"
#include "engine/step.h"

namespace lockstep {

class ChoiceLeader {
 public:
  // What has happened to a request: it can be scheduled, or it has failed.
  struct Judged {
    uint64_t id = 0;
    GenerateRequest request;
    Status status = Ok{};
  };

  // `shelf` must outlive it: that of this rank, which makes the grammars for a first look.
  ChoiceLeader(GrammarShelf& shelf, int vocab_size);

  // A request that was refused, or that can be scheduled at once (most), comes back; the others
  // wait for their grammar.
  std::optional<Judged> submit(uint64_t id, GenerateRequest request);
  // Those that have waited long enough, in order.
  std::vector<Judged> take_judged();
  bool is_waiting() const { return !waiting_.empty(); }
  // True if the request waited here; it is forgotten.
  bool cancel(uint64_t id);

  // Gives the rows of a planned step their slots, and the step what the ranks must be told.
  void decorate(Step& step);
  // The request has ended, whatever the reason. Also for requests that are not known here.
  void forget(uint64_t id);

 private:
  struct Grammar {
    std::string constraint;
    std::vector<int32_t> end_tokens;
    int uses = 0;  // requests that wait for it or run with it
    uint64_t last_use = 0;
  };
  struct Special {
    int32_t grammar = -1;
    int32_t slot = -1;
    ChoiceSetup setup;  // until it is told
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

  GrammarShelf& shelf_;
  const int vocab_size_;
  std::vector<Grammar> grammars_;  // by number
  uint64_t uses_ = 0;
  std::deque<Waiting> waiting_;
  std::map<uint64_t, Special> specials_;  // scheduled and not ended
  std::vector<bool> slots_;               // in use
  std::vector<int32_t> released_;         // slots; not told yet
  std::vector<int32_t> untold_;           // grammars
};

}  // namespace lockstep
