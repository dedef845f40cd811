// How fast a group of ranks is: the time of a token and of a prompt, and the energy, from what each
// rank reads and computes and from the figures of machines and links:
//
//   t = sum over the stages, over both parts of the layers, of the slowest rank's
//         (weights + keys and values) / read rate + operations * kernel time
//       + exchanges * (exchange time + link latency + bytes / link rate) + hops alike
//
// Pure arithmetic over the counts of planner/rank_load.h.
#pragma once

#include <span>
#include <vector>

#include "planner/facts/links.h"
#include "planner/facts/machine.h"
#include "planner/rank_load.h"

namespace lockstep {

// The time of a step, in microseconds.
struct StepTime {
  double weights = 0;
  double state = 0;     // reading keys and values
  double kernels = 0;   // operations besides reading and arithmetic
  double compute = 0;   // arithmetic beyond the time of reading
  double exchange = 0;  // between the ranks of a stage
  double hops = 0;      // between stages

  double total() const { return weights + state + kernels + compute + exchange + hops; }
  void add(const StepTime& other);
};

// A stage with its ranks, their loads, and the links among them.
struct StageView {
  Range layers;
  std::vector<int> class_layers;  // the number of each class of ModelFacts
  std::vector<const RankLoad*> loads;
  std::vector<const Machine*> machines;
  LinkFigures link;       // the slowest inside; ignored for one rank
  LinkFigures next_link;  // to the next stage, or from the last one back to the first
  bool cuts_latents = false;
};

struct GroupView {
  const ModelFacts& facts;
  std::vector<StageView> stages;
  KvKind kv = kKvDefault;
};

// A step that processes one token of each of `streams` sequences of `positions` positions.
struct DecodeStep {
  int streams = 1;
  int positions = 0;
};
StepTime stage_time(const GroupView& group, const StageView& stage, const DecodeStep& step);
// All stages one after the other: how long one stream waits for its token.
StepTime token_time(const GroupView& group, const DecodeStep& step);
// Tokens per second of `streams` sequences together; the stages work in parallel.
double tokens_per_s(const GroupView& group, const DecodeStep& step);

// Tokens per second of one stream with as many guesses of the draft layer in a step as make the
// most; 0: there is none. `right`: the share of guesses that are right, of those whose predecessors
// were.
double drafted_tokens_per_s(const GroupView& group, int positions, double right);
// The same with the guesses of another model, which is `draft`.
double drafted_tokens_per_s(const GroupView& group, const GroupView& draft, int positions,
                            double right);

// The time of one sequence's prompt until its first token; 0 if a machine's arithmetic speed is not
// known.
double prompt_us(const GroupView& group, int prompt_tokens, int batch_tokens_max);

// Energy per token in the steady state of `streams`; 0 if a machine's power is not known.
double joule_per_token(const GroupView& group, const DecodeStep& step);

}  // namespace lockstep
