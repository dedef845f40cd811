// ModelEngine: the Engine over a Model, a Sampler and a Scheduler, on one rank of any stage.
// Loading is in load_engine.cc, the loops of the ranks are in model_engine.cc, and what they do
// with pages on the disk in engine_pages.cc.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/choice_leader.h"
#include "engine/engine.h"
#include "engine/grammar_maker.h"
#include "engine/grammar_shelf.h"
#include "engine/inbox.h"
#include "engine/page_mover.h"
#include "engine/page_store.h"
#include "engine/pipeline.h"
#include "engine/scheduler.h"
#include "engine/stage_messages.h"
#include "engine/step_budget.h"
#include "model/model.h"
#include "model/open_model.h"

namespace lockstep {

class ModelEngine final : public Engine {
 public:
  ModelEngine(Group world, int stages, std::unique_ptr<Device> device, Progress* progress)
      : stages_(stages), device_(std::move(device)), progress_(progress) {
    join(std::move(world));
  }

  Status load(const EngineOptions& options);

  const LoadReport& report() const override { return report_; }
  void submit(uint64_t request, GenerateRequest options) override {
    inbox_.submit(request, std::move(options));
  }
  void cancel(uint64_t request) override { inbox_.cancel(request); }
  void stop() override { inbox_.stop(); }
  void leave() override { inbox_.leave(); }
  Status run(EngineEvents& events) override {
    return pipeline_->is_leader() ? lead(events) : follow();
  }
  Status rejoin(Group world) override;
  std::optional<PageStoreCounts> page_store_counts() const override {
    return store_ ? std::optional(store_->counts()) : std::nullopt;
  }

 private:
  // The links, and with begin_epoch() everything that is under way: what a group formed anew
  // replaces. The model and the sampler find the group where it was.
  void join(Group world) { pipeline_.emplace(std::move(world), stages_); }
  void begin_epoch();
  // `source` is that of `opened`, or quantises it.
  Status load_model(const EngineOptions& options, const OpenedModel& opened,
                    std::shared_ptr<const WeightSource> source);
  void make_sampler();
  // Without one where it cannot be had, which a warning says: serving goes on.
  void open_store(const EngineOptions& options);
  Result<std::unique_ptr<PageStore>> make_store(const EngineOptions& options);

  Status lead(EngineEvents& engine_events);
  // True if there is a stop among what other threads asked for; kCancelled to leave the epoch.
  Result<bool> take_requests(EngineEvents& events);
  void schedule(ChoiceLeader::Judged judged, EngineEvents& events);
  // Plans a step and computes this rank's part; false if there is none to plan now.
  Result<bool> begin_step(EngineEvents& events);
  // Completes the oldest step, whose result is there.
  Status finish_step(EngineEvents& events);
  Status complete(const StepResult& result, EngineEvents& events);
  Status stop_others();
  // To the next stage; then this rank has nothing more to do but to write its pages down.
  Status pass_stop_on();

  // Nothing else is to be done: orders a page to be saved, false if there is none.
  Result<bool> begin_save(EngineEvents& events);
  // Until something comes in, or it is time to try again to save what could not be saved.
  void idle();
  // Before a stop: what is not on the disk yet, as far as there is time.
  Status save_rest(EngineEvents& events);
  // What was saved is on the disk then, if it does not hang.
  void flush_store();
  // Obeys the orders for pages of step_ on this stage. `before`: what the stages before say.
  Result<PageOutcome> move_pages(const PageOutcome& before);

  Status follow();
  // The next step, and the hidden state if another stage has begun it.
  Result<StageWork> receive();
  // One stage's part of step_. The result is empty but on the last stage's first rank.
  Result<StepResult> compute(const StageWork& work);
  // What the step says of single sequences, where tokens are chosen.
  Status obey(ChoiceOrders& orders);
  Status broadcast();
  void set_progress(Progress::State state) {
    if (progress_) progress_->set(state);
  }

  int stages_;
  std::optional<Pipeline> pipeline_;
  std::unique_ptr<Device> device_;
  Progress* progress_;
  std::unique_ptr<Model> model_;
  std::optional<PageMover> mover_;
  std::unique_ptr<Sampler> sampler_;  // in the last stage
  SchedulerLimits limits_;
  Inbox inbox_;
  std::unique_ptr<PageStore> store_;  // null: none; ends before the inbox, which it wakes
  std::optional<StoreDisk> disk_;     // of rank 0's store
  bool has_warned_ = false;           // that the stores of other ranks are missing
  int failed_saves_ = 0;              // in a row, for want of room on another rank
  std::chrono::steady_clock::time_point save_again_{};  // not before
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<StepBudget> budget_;
  std::unique_ptr<GrammarMaker> grammar_maker_;  // ends before the inbox, which it wakes
  std::unique_ptr<GrammarShelf> grammars_;
  std::unique_ptr<ChoiceLeader> choice_leader_;  // on rank 0
  LoadReport report_;
  StageLimits stage_limits_;
  Step step_;
  std::vector<std::byte> message_, incoming_, outgoing_;
  std::vector<Choice> choices_;
};

}  // namespace lockstep
