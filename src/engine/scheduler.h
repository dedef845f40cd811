// Scheduler: which sequences run, and what the next step computes. Every running sequence that
// decodes gives one token; prompts fill what is left of the step in chunks. Pure bookkeeping
// without threads, devices or clocks; used on rank 0.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/step.h"
#include "model/sequence_state.h"

namespace lockstep {

struct SchedulerLimits {
  int sequences_max = 8;   // that run together
  int waiting_max = 1024;  // more are refused
  int tokens_max = 512;    // of one step
  int context = 0;         // positions of a sequence
  int vocab_size = 0;
};

// Pages with which every running sequence can fill its context, so that none ever runs out.
int pages_needed(const SchedulerLimits& limits);

class Scheduler {
 public:
  explicit Scheduler(const SchedulerLimits& limits);

  // kInvalidArgument (no or unknown tokens) or kExhausted (longer than the context, queue full).
  Status submit(uint64_t id, GenerateRequest request);
  // False if there is no such request (any more).
  bool cancel(uint64_t id);
  bool has_work() const { return !running_.empty() || !waiting_.empty(); }

  // Fills `step` with the next work. Does nothing else to the sequences until complete().
  void plan(Step& step);
  // Takes the choices of the step planned last, and the hidden states that it asked for, and
  // reports what came of them.
  void complete(std::span<const Choice> choices, std::span<const float> hidden,
                EngineEvents& events);

 private:
  struct Sequence {
    uint64_t id = 0;
    GenerateRequest request;
    std::vector<int32_t> tokens;  // prompt, then what was chosen
    int fed = 0;                  // tokens whose state is computed
    SequenceState state;
    std::vector<double> pooled;  // the sum of the hidden states so far

    int prompt_size() const { return static_cast<int>(request.prompt.size()); }
    int unfed() const { return static_cast<int>(tokens.size()) - fed; }
  };
  // What a planned step does for one sequence; its outputs follow each other in the step.
  struct Planned {
    Sequence* sequence;
    int fed;
    int outputs;
    int hidden_outputs;
  };

  void admit();
  void add(Sequence& sequence, int count, Step& step);
  // What follows the last token of a prompt that is only fed.
  static void end_prompt(const Sequence& sequence, EngineEvents& events);
  static void report_embedding(const Sequence& sequence, EngineEvents& events);
  // True if the sequence has ended.
  bool take_choice(Sequence& sequence, const Choice& choice, EngineEvents& events);
  void remove(const Sequence& sequence);

  SchedulerLimits limits_;
  StatePool pool_;
  std::vector<std::unique_ptr<Sequence>> running_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<Planned> planned_;
};

}  // namespace lockstep
