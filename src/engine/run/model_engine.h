// ModelEngine: the Engine over a Model, a Sampler and a Scheduler, on one rank of any stage.
// model_engine_load.cc has the loading, model_engine.cc the loops of the ranks, and
// model_engine_pages.cc the work with pages on disk.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/choices/grammar_cache.h"
#include "engine/choices/grammar_maker.h"
#include "engine/engine.h"
#include "engine/pages/page_mover.h"
#include "engine/run/draft_passes.h"
#include "engine/run/link_turns.h"
#include "engine/run/pipeline.h"
#include "engine/run/stage_messages.h"
#include "engine/schedule/choice_leader.h"
#include "engine/schedule/inbox.h"
#include "engine/schedule/scheduler.h"
#include "engine/schedule/step_budget.h"
#include "engine/store/page_store.h"
#include "model/forward/model.h"
#include "model/load/open_model.h"

namespace lockstep {

class ModelEngine final : public Engine {
 public:
  ModelEngine(Group world, int stages, std::unique_ptr<Device> device, Progress* progress)
      : stages_(stages), device_(std::move(device)), progress_(progress) {
    join(std::move(world));
  }

  Status load(const EngineOptions& options);

  const LoadReport& report() const override { return report_; }
  void submit(uint64_t request, MakeRequest make) override {
    inbox_.submit(request, std::move(make));
  }
  void cancel(uint64_t request) override { inbox_.cancel(request); }
  void stop() override { inbox_.stop(); }
  void leave() override { inbox_.leave(); }
  Status run(const EventSink& events) override {
    return pipeline_->is_leader() ? lead(events) : follow();
  }
  Status rejoin(Group world) override;
  DraftCounts draft_counts() const override {
    return {.steps = draft_steps_,
            .guesses = draft_guesses_,
            .right = draft_right_,
            .exchanges = exchanges_};
  }
  std::optional<PageStoreCounts> page_store_counts() const override {
    return store_ ? std::optional(store_->counts()) : std::nullopt;
  }

 private:
  // Replaces the links, and with begin_epoch() all work in progress, for a newly formed group. The
  // model and the sampler find the group at the same address.
  void join(Group world) { pipeline_.emplace(std::move(world), stages_); }
  void begin_epoch();
  // `source` is the source of `opened`, or one that quantises it.
  Status load_model(const EngineOptions& options, const OpenedModel& opened,
                    std::shared_ptr<const WeightSource> source);
  ModelOptions model_options(const EngineOptions& options, const ModelConfig& config,
                             std::shared_ptr<const WeightSource> source) const;
  void make_report(const GroupSpec& spec, const ModelConfig& config, int context);
  // The other model that guesses, if there is one: what can be refused before anything is loaded,
  // and the rest after load_model().
  Result<std::optional<OpenedModel>> open_draft_model(const GroupSpec& spec,
                                                      const OpenedModel& model);
  Status load_draft_model(const EngineOptions& options, const OpenedModel& opened);
  void make_sampler();
  // Serving continues without one if it cannot be opened, with a warning.
  void open_stores(const EngineOptions& options);
  Status make_stores(const EngineOptions& options);

  Status lead(const EventSink& sink);
  // True if a stop is among the other threads' requests; kCancelled to leave the epoch.
  Result<bool> take_requests(const EventSink& events);
  void schedule(ChoiceLeader::ReadyRequest ready, const EventSink& events);
  // Plans a step and computes this rank's part; false if there is nothing to plan now.
  Result<bool> begin_step(const EventSink& events);
  // Rank 0 sends step_ and computes its part of it, and times that. With one stage the step is
  // complete then, else it is in flight.
  Status carry_out(StepShape shape, const EventSink& events);
  // Completes the oldest step, whose result has arrived.
  Status finish_step(const EventSink& events);
  Status complete(const StepResult& result, const EventSink& events);
  Status stop_others();
  // Passes the stop on; then this rank only has to write its pages to disk.
  Status stop_here();
  // step_ to the next stage, which does all of it by itself.
  Status pass_on_as_it_is();
  // Rank 0: has a link measured, if it is time for that.
  Status measure_in_turn();
  // This rank's part of it.
  Status measure();

  // When there is no other work: orders a page or a state to be saved, false if there is none.
  Result<bool> begin_save(const EventSink& events);
  // Until something comes in, or it is time to retry a failed save.
  void idle();
  // Before a stop: saves what is not on disk yet, as time allows.
  Status save_rest(const EventSink& events);
  // Waits until what is saved is on disk, unless the disk hangs.
  Status flush_stores(std::chrono::milliseconds time);
  void flush_at_stop();
  // Executes the orders for pages of step_ on this stage. `before`: the outcome of earlier stages.
  Result<PageOutcome> move_pages(const PageOutcome& before);

  Status follow();
  // The next step, and the hidden state if an earlier stage has begun it.
  Result<StageWork> receive();
  // One stage's part of step_. The last of several stages sends the result to rank 0 and returns an
  // empty one; the first has a draft model's guesses.
  Result<StepResult> compute(const StageWork& work);
  // Makes step_'s guesses for later steps, which overwrites the outputs in the model's memory.
  Status guess_next(StepResult& result);
  Result<DraftOutcome> make_drafts();
  void count_drafts();
  // Applies the step's orders about single sequences, on the ranks that choose tokens.
  Status apply_orders(ChoiceOrders& orders);
  Status broadcast();
  void set_progress(Progress::State state) {
    if (progress_) progress_->set(state);
  }

  int stages_;
  std::optional<Pipeline> pipeline_;
  std::unique_ptr<Device> device_;
  Progress* progress_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Model> draft_model_;  // null: there is none
  std::optional<PageMover> mover_;
  std::unique_ptr<Sampler> sampler_;         // in the last stage
  std::optional<DraftPasses> draft_passes_;  // if a draft layer or model is used
  // For display, so that each may be read by itself.
  std::atomic<uint64_t> draft_steps_{0}, draft_guesses_{0}, draft_right_{0}, exchanges_{0};
  uint64_t counted_exchanges_ = 0;  // of the current group
  SchedulerLimits limits_;
  Inbox inbox_;
  // For pages, and for states of recurrent layers. Null: none; destroyed before the inbox, which
  // they wake.
  std::unique_ptr<PageStore> store_, state_store_;
  std::optional<StoreDisk> disk_;                       // for rank 0's stores
  bool has_warned_ = false;                             // that other ranks lack a store
  int failed_saves_ = 0;                                // in a row, since another rank had no room
  std::chrono::steady_clock::time_point save_again_{};  // the earliest time
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<StepBudget> budget_;
  // In a pipeline `budget_` knows the times of rank 0's own part, for prompts, and `round_trips_`
  // those until the choices are back, for guesses.
  struct SentStep {
    StepShape shape;
    std::chrono::steady_clock::time_point begin;
    bool waits;  // for a prompt before it: its time says nothing
  };
  std::unique_ptr<StepBudget> round_trips_;
  std::vector<SentStep> sent_;  // oldest first; a few
  std::chrono::milliseconds measure_links_every_{0};
  std::optional<LinkTurns> link_turns_;
  std::unique_ptr<GrammarMaker> grammar_maker_;  // destroyed before the inbox, which it wakes
  std::unique_ptr<GrammarCache> grammars_;
  std::unique_ptr<ChoiceLeader> choice_leader_;  // on rank 0
  LoadReport report_;
  StageLimits stage_limits_;
  Step step_;
  std::vector<std::byte> message_, incoming_, outgoing_;
  std::vector<SampledToken> choices_;
  std::vector<float> hidden_;  // of a step that makes guesses
};

}  // namespace lockstep
