// Scheduler: which sequences run, and what the next step computes. Every running sequence that
// decodes gives one token; prompts fill what is left of the step, or of its budget of time, in
// chunks. Pure bookkeeping without threads, devices or clocks; used on rank 0.
//
// The state of a prompt's beginning is taken over where it is there (page_cache.h). Where another
// running sequence is computing it at this moment a sequence waits for that, page by page, so that
// requests which begin alike compute their beginning once.
//
// What lies on the disk is loaded in the same way: a sequence whose next pages are there is in a
// step that loads some of them on every rank, and computes what could not be loaded. Pages are
// saved when there is nothing else to do, and when they leave memory (page_cache.h).
//
// Where few sequences decode and nothing else is to be done, the next tokens of each are guessed
// (prompt_lookup.h) and computed together. What is chosen behind each of them is what would be
// chosen without, as long as all guesses before it were chosen too; the rest is thrown away, and
// its positions are written again.
//
// In a pipeline several steps are under way: they are planned ahead and come back in the same
// order. A sequence that decodes is in one of them at most, since its next token needs the choice;
// chunks of a prompt follow each other without waiting. The sequences that decode are spread over
// as many steps as there are stages, so that each stage has one to work on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/fair_queue.h"
#include "engine/page_cache.h"
#include "engine/prompt_lookup.h"
#include "engine/step.h"
#include "engine/step_budget.h"

namespace lockstep {

struct SchedulerLimits {
  int sequences_max = 8;   // that run together
  int waiting_max = 1024;  // more are refused
  // Of one client that is known. All of them, since the node that hears clients has limits for each
  // of its own; they have turns anyway.
  int client_waiting_max = 1024;
  int tokens_max = 512;  // of one step
  int context = 0;       // positions of a sequence
  int vocab_size = 0;
  int stages = 1;  // of the pipeline
};

// Tokens of prompts in one step: all that there is room for, but with several stages such a part of
// it that a prompt of one whole step keeps all of them busy most of the time, and not less than one
// page, below which the weights are read for too few tokens.
int prompt_tokens_max(const SchedulerLimits& limits);
// Tokens that one prompt is fed in a step: with several stages a part of the prompt by the same
// rule, so that a short one too is under way in several.
int prompt_chunk(int prompt_size, const SchedulerLimits& limits);
// Steps that should be under way together: one for each stage, and one that waits for the first
// stage while the oldest is on its way back.
int steps_in_flight_max(int stages);

// What a step loads from disks at most, in bytes of rank 0's parts: alone, and beside sequences
// that decode, which a chunk of a prompt would hold up for longer. One page always.
inline constexpr size_t kLoadBytesMax = size_t{64} << 20;
inline constexpr size_t kLoadBytesBesideMax = size_t{16} << 20;

// Pages with which every running sequence can fill its context, so that none ever runs out.
int pages_needed(const SchedulerLimits& limits);

class Scheduler {
 public:
  // `disk` must outlive it; null: there is none.
  explicit Scheduler(const SchedulerLimits& limits, PageDisk* disk = nullptr);

  // kInvalidArgument (no or unknown tokens) or kExhausted (longer than the context, queue full).
  Status submit(uint64_t id, GenerateRequest request);
  // False if there is no such request (any more).
  bool cancel(uint64_t id);

  // Fills `step` with the next work; false if there is none until a step under way is completed.
  // `budget` bounds the prompts beside sequences that decode; null: nothing does.
  bool plan(Step& step, const StepBudget* budget = nullptr);
  // For when there is nothing else to do: fills `step` with the order to save a page, if there is
  // one and the disk has room for it.
  bool plan_save(Step& step);
  // True if a page could not be saved since this was asked last, because a rank had no room: it is
  // worth another try later.
  bool take_save_failed() { return std::exchange(save_failed_, false); }
  bool has_unsaved() const { return pages_.unsaved_pages() > 0; }

  // Of the step that was planned last.
  StepShape shape() const { return shape_; }
  int steps_in_flight() const { return static_cast<int>(in_flight_.size()); }
  // Takes the choices of the oldest step under way, and the hidden states that it asked for, and
  // reports what came of them. kCorrupt if they are not as many as it asked for. `moved`: what came
  // of its orders for pages.
  Status complete(std::span<const Choice> choices, std::span<const float> hidden,
                  EngineEvents& events, PageOutcome moved = {});

  struct PageCounts {
    int all = 0;
    int free = 0;
    int cached = 0;   // in the tree; some of them may be in use
    int unsaved = 0;  // of these, those that may have to be saved
  };
  PageCounts page_counts() const;

 private:
  struct Sequence {
    uint64_t id = 0;
    GenerateRequest request;
    std::vector<int32_t> tokens;  // prompt, then what was chosen
    int fed = 0;                  // tokens whose state is computed, or will be by steps under way
    int completed = 0;            // tokens whose state is computed
    int cached = 0;               // tokens whose state was there
    bool is_started = false;      // on_start was reported
    int steps_in_flight = 0;
    bool is_loading = false;      // a step under way loads its next pages
    bool waits_for_disk = false;  // its next pages will be loaded, and not by this step
    uint64_t last_step = 0;       // the number of the last step that had it
    // Nothing is planned or reported any more; its pages and its place are free once no step under
    // way writes there.
    bool is_cancelled = false;
    CachedPages pages;
    std::vector<double> pooled;  // the sum of the hidden states so far
    Drafts drafts;

    int prompt_size() const { return static_cast<int>(request.prompt.size()); }
    int unfed() const { return static_cast<int>(tokens.size()) - fed; }
    // Nothing is reported of what lies behind the last token of the prompt.
    bool may_take_over() const {
      return !request.prompt_logits && request.pooling != Pooling::kMean && !is_cancelled;
    }
    // Its next token may be computed.
    bool may_be_fed() const { return !is_cancelled && !is_loading && !waits_for_disk; }
    bool decodes() const { return request.max_tokens > 0 && unfed() <= 1 && may_be_fed(); }
  };
  // What a planned step does for one sequence; its outputs follow each other in the step.
  struct Planned {
    Sequence* sequence;
    int end;  // of its tokens in the step
    int outputs;
    int hidden_outputs;
    int drafts;  // guesses behind the last token that was known
    int loads;   // pages; there are no tokens then
  };

  struct PlannedStep {
    std::vector<Planned> sequences;
    std::optional<PageOrder> save;  // if there was nothing else to do
  };

  void admit();
  void take_over_pages();
  // In scheduler_disk.cc.
  void plan_loads(bool is_beside, Step& step, PlannedStep& planned);
  bool may_load(const Sequence& sequence) const;
  void add_loads(Sequence& sequence, int pages, Step& step, PlannedStep& planned);
  // Returns how many of the loads the step has left for the sequences after it.
  int complete_loads(const Planned& planned, int loaded);
  void complete_orders(const PlannedStep& step, PageOutcome moved);
  // Returns how many sequences decode, in this step or another.
  int plan_decoding(Step& step, PlannedStep& planned);
  void plan_prompts(int tokens_max, Step& step, PlannedStep& planned);
  PlannedStep take_spare();
  // How many next tokens of a sequence that decodes are guessed.
  int draft(Sequence& sequence) const;
  // Puts the prompts into ready_, behind that which has run longest of those that need not wait.
  void find_prompts();
  int chunk_of(const Sequence& sequence, int room) const;
  // Whether the page that the sequence would begin is computed by another one. `next` is about to.
  bool waits(const Sequence& sequence, const Sequence* next) const;
  void add(Sequence& sequence, int count, Step& step, PlannedStep& planned);
  // What follows the last token of a prompt that is only fed.
  void end_prompt(Sequence& sequence, EngineEvents& events);
  static void report_embedding(const Sequence& sequence, EngineEvents& events);
  // Both: true if the sequence has ended.
  bool take_outputs(const Planned& planned, std::span<const Choice> choices,
                    std::span<const float> hidden, size_t width, EngineEvents& events);
  // The guesses that were right are computed, the others never were.
  static void end_drafts(Sequence& sequence, const Planned& planned, int right);
  bool take_choice(Sequence& sequence, const Choice& choice, EngineEvents& events);
  static void fail(Sequence& sequence, const Error& error, EngineEvents& events);
  void remove(const Sequence& sequence);

  SchedulerLimits limits_;
  PageCache pages_;
  std::vector<std::unique_ptr<Sequence>> running_;  // in the order of admission
  FairQueue<std::unique_ptr<Sequence>> waiting_;
  std::vector<PlannedStep> in_flight_;  // oldest first; a few
  std::vector<PlannedStep> spare_;      // memory of completed steps
  std::vector<Sequence*> ready_;        // scratch of plan()
  StepShape shape_;
  bool save_failed_ = false;
  uint64_t steps_planned_ = 0;
};

}  // namespace lockstep
