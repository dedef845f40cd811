// Scheduler: which sequences run, and what the next step computes. Every decoding sequence gets one
// token; chunks of prompts fill the rest of the step, or of its time budget. Pure bookkeeping
// without threads, devices or clocks; used on rank 0.
//
// The cached state of a prompt's beginning is reused (page_cache.h). If another running sequence is
// computing it right now, a sequence waits for that, page by page, so that requests with the same
// beginning compute it once.
//
// Pages on disk are loaded in the same way: a sequence whose next pages are there takes part in a
// step that loads some of them on every rank, and computes those that could not be loaded. Pages
// are saved when there is nothing else to do, and when they are evicted from memory (page_cache.h).
// With recurrent layers a sequence loads pages up to the last state that is on disk, in as many
// steps as it takes, and then that state. With window pages it loads pages up to the last one where
// the window pages are there, and then these. If a rank cannot load one of them, the sequence goes
// on from where it began to load.
//
// If few sequences decode and there is no other work, the next tokens of each are guessed
// (prompt_lookup.h) and computed together. The choice after each guess is the same as without
// guessing, as long as all earlier guesses were chosen too; the rest is discarded, and its
// positions are overwritten. A request may also say what it expects its answer to be, which is
// computed in the same way.
//
// A draft layer (model/forward/model_forward_draft.cc), or a draft model, guesses too, with every
// rank, before the step that computes its guesses: the step's orders say how many and where they
// belong. Each step also has the layer compute its entries of the tokens of the step before. In a
// pipeline the last stage has the layer compute the entries of a step's own tokens at its end, and
// make the guesses for the sequence's next step, which come with the choices.
//
// In a pipeline several steps are in flight: they are planned ahead and return in the same order. A
// decoding sequence is in at most one of them, since its next token needs the choice; chunks of a
// prompt follow each other without waiting. Decoding sequences are spread over as many steps as
// there are stages, so that each stage has one to work on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/choices/guess_accuracy.h"
#include "engine/choices/prompt_lookup.h"
#include "engine/engine.h"
#include "engine/pages/page_cache.h"
#include "engine/schedule/fair_queue.h"
#include "engine/schedule/step.h"
#include "engine/schedule/step_budget.h"

namespace lockstep {

struct SchedulerLimits {
  int sequences_max = kSequencesDefault;  // that run together
  int waiting_max = 1024;                 // more are refused
  // Per known client. Equal to waiting_max, since the node that accepts clients limits each of its
  // own; clients take turns anyway.
  int client_waiting_max = 1024;
  int tokens_max = kBatchTokensDefault;  // per step
  int context = 0;                       // positions of a sequence
  int vocab_size = 0;
  int stages = 1;        // of the pipeline
  int states = 0;        // of recurrent layers: states_needed(sequences_max); 0: there are none
  int window_pages = 0;  // by WindowNeed, for `reach`; 0: there are none
  int reach = 0;
  bool has_draft_layer = false;
  // Tokens of a draft model, which may be fewer than the model's; 0: there is none. Without a draft
  // layer only.
  int draft_vocab_size = 0;
  int layer_guesses = 0;  // in every step; 0: as many as pay
  int draft_block = 0;    // tokens that the layer guesses at once; 0: one after the other

  // The draft layer guesses at the end of a step, for the next one.
  bool guesses_at_end() const { return has_draft_layer && stages > 1; }
  bool has_draft_model() const { return draft_vocab_size > 0; }
  bool has_windows() const { return window_pages > 0; }
};

// Tokens of prompts in one step: as many as fit, but with several stages only so many that a prompt
// of one whole step keeps all of them busy most of the time, and at least one page: with fewer
// tokens reading the weights does not pay.
int prompt_tokens_max(const SchedulerLimits& limits);
// Tokens of one prompt in a step: with several stages a part of the prompt by the same rule, so
// that a short one is spread over several steps too.
int prompt_chunk(int prompt_size, const SchedulerLimits& limits);
// Steps to keep in flight: one for each stage, and one that waits for the first stage while the
// oldest returns.
int steps_in_flight_max(int stages);

// The most a step loads from disk, in bytes of rank 0's parts: alone, and together with decoding
// sequences, which a prompt chunk would delay for longer. At least one page.
inline constexpr size_t kLoadBytesMax = size_t{64} << 20;
inline constexpr size_t kLoadBytesBesideMax = size_t{16} << 20;

// With more sequences a step has enough rows to make reading the weights worthwhile, and nothing is
// guessed.
inline constexpr int kDraftingSequencesMax = 2;

// Pages that let every running sequence fill its context, so that none ever runs out.
int pages_needed(const SchedulerLimits& limits);

// The part of a step's results that a draft layer or model made. In a pipeline there are only the
// last ones.
struct DraftOutcome {
  std::span<const int32_t> tokens{};             // of the step's batch, with the guesses
  std::span<const std::vector<float>> logits{};  // one row for each output of which they are wanted
  std::span<const int32_t> next_guesses{};       // of step.next_guesses; -1: could not be made
};

// Times of steps, for planning. Null: not known, and no limit.
struct StepBudgets {
  const StepBudget* prompts = nullptr;  // limits those added to decoding sequences
  const StepBudget* guesses = nullptr;  // how many pay
};

class Scheduler {
 public:
  // `disk` must outlive it; null: none.
  explicit Scheduler(const SchedulerLimits& limits, PageDisk* disk = nullptr);

  // kInvalidArgument (no or unknown tokens) or kExhausted (longer than the context, queue full).
  Status submit(uint64_t id, GenerateRequest request);
  // False if there is no such request (any more).
  bool cancel(uint64_t id);

  // Fills `step` with the next work; false if there is none until a step in flight is completed.
  bool plan(Step& step, const StepBudgets& budgets = {});
  // Reports RequestEvent::Progress of the requests that begin with the last planned step.
  void report_begun(const EventSink& events);
  // For when there is no other work: fills `step` with the order to save a page or a state, if
  // there is one and the disk has room for it.
  bool plan_save(Step& step);
  // Whether a save failed since the last call because a rank had no room: worth a retry later.
  bool take_save_failed() { return std::exchange(save_failed_, false); }
  bool has_unsaved() const { return pages_.unsaved_pages() + pages_.unsaved_states() > 0; }

  // The shape of the last planned step.
  StepShape shape() const { return shape_; }
  int steps_in_flight() const { return static_cast<int>(in_flight_.size()); }
  // In a pipeline: takes the guesses of a draft model for the last planned step, from its batch.
  void take_guesses(std::span<const int32_t> batch);
  // Takes the choices and requested hidden states of the oldest step in flight, and reports the
  // results. kCorrupt if their number is not the one requested. `moved`: the outcome of the step's
  // page orders.
  Status complete(std::span<const SampledToken> choices, std::span<const float> hidden,
                  const EventSink& events, PageOutcome moved = {}, DraftOutcome drafted = {});

  struct PageCounts {
    int all = 0;
    int free = 0;
    int cached = 0;          // in the tree, some of them possibly in use
    int unsaved = 0;         // those of `cached` that may still have to be saved
    int snapshots = 0;       // of recurrent layers, one for each of some pages in the tree
    int free_states = 0;     // neither a snapshot nor in use
    int unused_windows = 0;  // window pages that no sequence uses
  };
  PageCounts page_counts() const;
  // Those since the last call.
  DraftCounts take_draft_counts() { return std::exchange(draft_counts_, {}); }

 private:
  struct Sequence {
    uint64_t id = 0;
    GenerateRequest request;
    std::vector<int32_t> tokens;  // prompt, then chosen tokens
    int fed = 0;                  // tokens whose state is computed, or will be by steps in flight
    int completed = 0;            // tokens whose state is computed
    int cached = 0;               // tokens whose state was cached
    bool is_begun = false;        // its turn has come
    bool is_started = false;      // its start was reported
    int steps_in_flight = 0;
    bool is_loading = false;      // steps load its next pages
    bool waits_for_disk = false;  // its next pages will be loaded by a later step
    uint64_t last_step = 0;       // the number of the last step that included it
    // Nothing is planned or reported any more; its pages and its place are freed once no step in
    // flight writes to them.
    bool is_cancelled = false;
    CachedPages pages;
    std::vector<double> pooled;  // the sum of the hidden states so far
    Drafts drafts;
    GuessAccuracy layer_accuracy;   // of the draft layer or the draft model
    bool guesses_by_layer = false;  // the guesses of the step in flight
    // Those that came with its last choice, and continue its text.
    std::array<int32_t, kLayerGuessesMax> next_guesses{};
    int next_count = 0;
    int drafted = 0;  // tokens whose state the draft model has computed

    int prompt_size() const { return static_cast<int>(request.prompt.size()); }
    // The tokens that may still be chosen.
    int left() const {
      return request.max_tokens - (static_cast<int>(tokens.size()) - prompt_size());
    }
    int unfed() const { return static_cast<int>(tokens.size()) - fed; }
    // Nothing before the last token of the prompt has to be reported.
    bool may_take_over() const {
      return !request.prompt_logits && !request.draft_logits && request.pooling != Pooling::kMean &&
             !is_cancelled;
    }
    // Whether its next token may be computed.
    bool may_be_fed() const { return !is_cancelled && !is_loading && !waits_for_disk; }
    bool decodes() const { return request.max_tokens > 0 && unfed() <= 1 && may_be_fed(); }
  };
  // A planned step's work for one sequence; its outputs are contiguous in the step.
  struct Planned {
    Sequence* sequence;
    int begin;      // position of its first token in the step,
    int first_row;  // which is this one of the batch
    int end;        // position after its last token
    int outputs;
    int hidden_outputs;
    int drafts;           // guesses after the last known token
    bool by_layer;        // the draft layer makes them
    int wanted_guesses;   // for its next step
    int loads;            // pages
    int state_loads = 0;  // states or window pages

    bool is_load() const { return loads > 0 || state_loads > 0; }  // then there are no tokens
    int first_guess() const { return first_row + end - begin - drafts; }  // of the batch
  };

  struct PlannedStep {
    std::vector<Planned> sequences;
    std::optional<PageOrder> save;         // if there was no other work
    std::optional<StateOrder> state_save;  // the same
    std::vector<uint64_t> draft_rows;      // the request of each row of the draft layer's logits
  };

  void admit();
  void take_over_pages();
  // In scheduler_disk.cc.
  void plan_loads(bool is_beside, Step& step, PlannedStep& planned);
  bool may_load(const Sequence& sequence) const;
  void plan_page_loads(Sequence& sequence, int& room, Step& step, PlannedStep& planned);
  struct LoadRoom {  // in a step
    int pages = 0;
    int windows = 0;
  };
  void plan_resume(Sequence& sequence, LoadRoom& room, Step& step, PlannedStep& planned);
  void plan_window_loads(Sequence& sequence, int& room, Step& step, PlannedStep& planned);
  void add_loads(Sequence& sequence, int pages, Step& step, PlannedStep& planned);
  void complete_loads(const PlannedStep& step, int loaded);
  void forget_on_disk(const CachedPages& pages, int next, bool is_missing);
  void end_loads(Sequence& sequence, int pages);
  void end_resume(Sequence& sequence, bool is_whole, bool has_state);
  void complete_orders(const PlannedStep& step, PageOutcome moved);
  void close_disk();
  // Returns how many sequences decode, in this step or another.
  int plan_decoding(Step& step, PlannedStep& planned);
  void plan_prompts(int tokens_max, Step& step, PlannedStep& planned);
  PlannedStep take_spare();
  // Puts the prompts into ready_, first the longest-running one that need not wait.
  void find_prompts();
  int chunk_of(const Sequence& sequence, int room) const;
  // Whether another sequence computes the page that this one would begin. `next` is about to.
  bool waits(const Sequence& sequence, const Sequence* next) const;
  void grow(Sequence& sequence, int length, bool are_loaded, Step& step);
  void pass_windows(const PlannedStep& planned);
  // Returns where the list of its pages begins.
  static int32_t add_page_list(const Sequence& sequence, Batch& batch);
  void add(Sequence& sequence, int count, Step& step, PlannedStep& planned);
  // Ends the prompt of a request that generates nothing.
  void end_prompt(Sequence& sequence, const EventSink& events);
  static void report_embedding(const Sequence& sequence, const EventSink& events);
  // Both: true if the sequence has ended.
  bool take_outputs(const Planned& planned, std::span<const SampledToken> choices,
                    std::span<const float> hidden, size_t width, const EventSink& events);
  // Right guesses are computed; the others are dropped.
  void end_drafts(Sequence& sequence, const Planned& planned, int right);
  bool take_choice(Sequence& sequence, const SampledToken& choice, const EventSink& events);
  static void fail(Sequence& sequence, const Error& error, const EventSink& events);
  void remove(const Sequence& sequence);
  // In scheduler_drafts.cc.
  Status check_draft_logits(const GenerateRequest& request) const;
  void guess(Sequence& sequence, int room, bool may_draft, int decoding);
  int guess_by_layer(const Sequence& sequence, int decoding) const;
  // At most `most`.
  int guesses_that_pay(const Sequence& sequence, int decoding, int most) const;
  // In a pipeline: the guesses wanted at the end of a step up to `end`, the orders for them, and
  // those made, of which a step uses at most `room`.
  int wanted_guesses(const Sequence& sequence, int end) const;
  static void plan_next_guesses(Step& step, const PlannedStep& planned);
  static void keep_next_guesses(Sequence& sequence, std::span<const int32_t> guesses);
  int use_next_guesses(Sequence& sequence, int room) const;
  // Whether the layer or the model can continue the last token.
  bool may_guess(const Sequence& sequence) const;
  void plan_draft_pass(Step& step, PlannedStep& planned);
  void take_drafted(const PlannedStep& step, DraftOutcome drafted, const EventSink& events);
  static void take_guesses(const PlannedStep& step, std::span<const int32_t> batch);
  // Both guess the next tokens of a decoding sequence and return their number: from its text, and
  // from what its request expects. `room`: for guesses in the step.
  int draft(Sequence& sequence) const;
  int expect(Sequence& sequence, int room) const;
  int guesses_max(const Sequence& sequence) const;
  // Whether the blocks of as many sequences as are guessed for fit in a batch, and this one's in
  // its context.
  bool has_room_for_block(const Sequence& sequence) const;
  // The positions that a step up to `end` needs room for.
  int positions_needed(const Sequence& sequence, int end, int wanted_guesses) const;
  // In scheduler_draft_model.cc.
  bool may_guess_by_model(const Sequence& sequence) const;
  void plan_model_pass(Step& step, PlannedStep& planned);
  int rows_for_model(const Planned& planned) const;
  int add_rows_for_model(Sequence& sequence, int rows, Step& step);
  void set_drafted(Sequence& sequence, int end);
  void find_drafted(Sequence& sequence) const;

  SchedulerLimits limits_;
  PageCache pages_;
  std::vector<std::unique_ptr<Sequence>> running_;  // in the order of admission
  FairQueue<std::unique_ptr<Sequence>> waiting_;
  std::vector<PlannedStep> in_flight_;  // oldest first; a few
  std::vector<PlannedStep> spare_;      // memory of completed steps
  std::vector<Sequence*> ready_;        // scratch of plan()
  StepShape shape_;
  StepBudgets budgets_;  // of the plan being made
  // Tokens of the last batch that the draft layer has not seen.
  struct Undrafted {
    Sequence* sequence;
    int begin;  // positions
    int end;
    int first_row;  // of the batch
  };
  std::vector<Undrafted> undrafted_;
  // The first positions of each page whose state the draft model has computed.
  std::vector<uint8_t> drafted_in_page_;
  DraftCounts draft_counts_;
  bool save_failed_ = false;
  uint64_t steps_planned_ = 0;
};

}  // namespace lockstep
