#include "node/fetch/model_fetcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/threads/guarded.h"
#include "node/fetch/piece_host.h"

namespace lockstep {
namespace {

constexpr const char* kPlacedAgain = "the model is being placed again";

// The most urgent wish; serving comes first.
FetchWish first_of(const std::vector<FetchWish>& wishes) {
  for (const FetchKind kind :
       {FetchKind::kWhole, FetchKind::kReads, FetchKind::kTable, FetchKind::kSmall}) {
    const auto found = std::find_if(wishes.begin(), wishes.end(),
                                    [&](const FetchWish& wish) { return wish.kind == kind; });
    if (found != wishes.end()) return *found;
  }
  return wishes.front();
}

// Whether a fetch with this target also answers this wish.
bool covers(const FetchWish& target, bool has_weights, const FetchWish& wish) {
  if (wish.kind == FetchKind::kCopies || target.kind == FetchKind::kCopies) return wish == target;
  if (wish.kind == FetchKind::kSmall) return true;
  if (!has_weights) return false;  // only the small files were wanted when it began
  if (target.kind == FetchKind::kTable) return wish.kind == FetchKind::kTable;
  if (target.kind == FetchKind::kReads) return wish == target || wish.kind == FetchKind::kTable;
  return true;
}

}  // namespace

// The loop's thread, except that a fetch's own thread uses `settings`, `local_models` and `board`.
struct ModelFetcher::Impl : std::enable_shared_from_this<Impl> {
  struct Request {
    uint64_t number = 0;
    FetchWish wish;
    Events events;
  };
  // All requests for one model, and the thread that serves them.
  struct Job {
    std::vector<Request> requests;
    std::atomic<bool> cancelled{false};
    std::atomic<bool> wants_whole{false};
    bool is_given_up = false;  // all its requests were cancelled
    FetchWish target;          // of the running thread
    std::thread thread;
  };

  Impl(EventLoop& own_loop, PieceNetwork& own_network, const NodeId& own_self, FetchSettings chosen)
      : loop(own_loop),
        network(own_network),
        self(own_self),
        settings(std::move(chosen)),
        local_models(settings.hub, settings.home, settings.root, settings.piece_bytes),
        host(own_loop, local_models, board, settings.keeps_shares) {}

  void add(const std::string& model, Request request);
  void start_next();
  void start(const std::string& model, Job& job);
  void tell_progress(const std::string& model, const FetchProgress& progress);
  void make_way(Job& job);
  template <class IsMeant>
  void answer(const std::string& model, const Result<FetchedModel>& outcome,
              const IsMeant& is_meant);
  void on_ended(const std::string& model, const Result<FetchedModel>& outcome);
  void cancel(uint64_t number);
  static void run(const std::weak_ptr<Impl>& weak, const ModelFetch::Surroundings& around,
                  const std::string& model, Job& job);

  EventLoop& loop;
  PieceNetwork& network;
  const NodeId self;
  const FetchSettings settings;
  LocalModels local_models;
  FetchBoard board;
  PieceStreamPool streams;
  PieceHost host;
  std::atomic<uint64_t> next_number{1};
  bool is_ending = false;
  size_t running = 0;
  std::map<std::string, std::unique_ptr<Job>> jobs;  // by model
  std::deque<std::string> waiting;                   // models of `jobs`, first in, first out
};

ModelFetcher::ModelFetcher(EventLoop& loop, PieceNetwork& network, const NodeId& self,
                           FetchSettings settings)
    : loop_(loop), impl_(std::make_shared<Impl>(loop, network, self, std::move(settings))) {}

ModelFetcher::~ModelFetcher() {
  std::map<std::string, std::unique_ptr<Impl::Job>> jobs;
  loop_.must_run([&] {
    impl_->is_ending = true;
    impl_->waiting.clear();
    jobs = std::exchange(impl_->jobs, {});
    // relaxed: only a flag for the threads
    for (auto& [model, job] : jobs) job->cancelled.store(true, std::memory_order_relaxed);
  });
  for (auto& [model, job] : jobs) {
    if (job->thread.joinable()) job->thread.join();
  }
  impl_->streams.clear();
  // By then the loop has dropped the streams that the threads gave back.
  loop_.must_run([] {});
  impl_.reset();
}

uint64_t ModelFetcher::add(const std::string& model, FetchWish wish, Events events) {
  const uint64_t number = impl_->next_number.fetch_add(1, std::memory_order_relaxed);  // a count
  if (!impl_->settings.keeps_shares && wish.kind > FetchKind::kWhole) wish = {};
  loop_.post([weak = std::weak_ptr<Impl>(impl_), model, number, wish = std::move(wish),
              events = std::move(events)] {
    if (const auto self = weak.lock()) self->add(model, {number, wish, events});
  });
  return number;
}

uint64_t ModelFetcher::fetch(const std::string& model, Events events) {
  return add(model, {.kind = FetchKind::kWhole}, std::move(events));
}

uint64_t ModelFetcher::fetch_small(const std::string& model, Events events) {
  return add(model, {.kind = FetchKind::kSmall}, std::move(events));
}

uint64_t ModelFetcher::fetch_reads(const std::string& model, const RankPlan& plan, Events events) {
  return add(model, {.kind = FetchKind::kReads, .plan = plan}, std::move(events));
}

uint64_t ModelFetcher::fetch_table(const std::string& model, Events events) {
  return add(model, {.kind = FetchKind::kTable}, std::move(events));
}

uint64_t ModelFetcher::keep_copies(const std::string& model, const RankPlan& plan, bool drops,
                                   Events events) {
  LOCKSTEP_CHECK(impl_->settings.keeps_shares);
  return add(model, {.kind = FetchKind::kCopies, .plan = plan, .drops = drops}, std::move(events));
}

bool ModelFetcher::keeps_shares() const {
  return impl_->settings.keeps_shares;
}

std::chrono::milliseconds ModelFetcher::copies_every() const {
  return impl_->settings.copies_every;
}

void ModelFetcher::cancel(uint64_t number) {
  loop_.post([weak = std::weak_ptr<Impl>(impl_), number] {
    if (const auto self = weak.lock()) self->cancel(number);
  });
}

void ModelFetcher::offer(const std::string& model) {
  impl_->local_models.offer(model);
}

void ModelFetcher::forget(const std::string& model) {
  impl_->local_models.forget(model);
}

void ModelFetcher::on_stream(const NodeId& from, const Channel& channel,
                             FrameConnection connection) {
  if (channel.kind != kPieceChannel || impl_->is_ending) return connection.close();
  impl_->host.on_stream(from, std::move(connection));
}

void ModelFetcher::Impl::add(const std::string& model, Request request) {
  if (is_ending) return;
  local_models.offer(model);
  size_t count = 0;
  for (const auto& [name, job] : jobs) count += job->requests.size();
  if (count >= kRequestsMax) {
    return request.events.on_done(
        Error{ErrorCode::kExhausted,
              fmt::format("{} fetches of models are already awaited", kRequestsMax)});
  }
  auto& job = jobs[model];
  const bool is_new = !job;
  if (is_new) job = std::make_unique<Job>();
  // relaxed: if the thread sees it too late, on_ended() starts it again
  if (request.wish.kind == FetchKind::kWhole) {
    job->wants_whole.store(true, std::memory_order_relaxed);
  }
  const bool is_urgent = request.wish.kind != FetchKind::kCopies;
  const bool is_late = !is_urgent && std::any_of(job->requests.begin(), job->requests.end(),
                                                 [](const Request& other) {
                                                   return other.wish.kind != FetchKind::kCopies;
                                                 });
  if (is_late) return request.events.on_done(Error{ErrorCode::kCancelled, kPlacedAgain});
  job->requests.push_back(std::move(request));
  if (is_new) {
    waiting.push_back(model);
    return start_next();
  }
  if (is_urgent) make_way(*job);
}

// Copies can wait, and pieces to be given back for one placement may be read by the next.
void ModelFetcher::Impl::make_way(Job& job) {
  std::vector<Request> ended;
  std::erase_if(job.requests, [&](Request& request) {
    if (request.wish.kind != FetchKind::kCopies) return false;
    ended.push_back(std::move(request));
    return true;
  });
  if (job.thread.joinable() && job.target.kind == FetchKind::kCopies) {
    // relaxed: only a flag for its thread.
    job.cancelled.store(true, std::memory_order_relaxed);
  }
  for (const Request& request : ended) {
    request.events.on_done(Error{ErrorCode::kCancelled, kPlacedAgain});
  }
}

void ModelFetcher::Impl::start_next() {
  while (!waiting.empty() && running < kFetchesMax && !is_ending) {
    const std::string model = waiting.front();
    waiting.pop_front();
    const auto found = jobs.find(model);
    if (found == jobs.end()) continue;
    if (found->second->requests.empty()) {  // cancelled meanwhile
      jobs.erase(found);
      continue;
    }
    ++running;
    start(model, *found->second);
  }
}

void ModelFetcher::Impl::start(const std::string& model, Job& job) {
  const ModelFetch::Surroundings around{loop,  network, streams, local_models,
                                        board, self,    settings};
  job.is_given_up = false;
  std::vector<FetchWish> wishes;
  for (const Request& request : job.requests) wishes.push_back(request.wish);
  job.target = first_of(wishes);
  job.cancelled.store(false, std::memory_order_relaxed);  // before the thread begins
  const auto weak = weak_from_this();
  const Status started = guarded([&] {
    job.thread = std::thread([weak, around, model, &job] { run(weak, around, model, job); });
  });
  if (started.ok()) return;
  loop.post([weak, model, error = started.error()] {
    if (const auto self = weak.lock()) self->on_ended(model, error);
  });
}

// The job's thread. Its data outlives it: the destructor and on_ended() wait for it.
void ModelFetcher::Impl::run(const std::weak_ptr<Impl>& weak,
                             const ModelFetch::Surroundings& around, const std::string& model,
                             Job& job) {
  EventLoop& loop = around.loop;
  const auto is_small = [](const FetchWish& wish) { return wish.kind == FetchKind::kSmall; };
  const ModelFetch::Events events{.on_progress =
                                      [&](const FetchProgress& progress) {
                                        loop.post([weak, model, progress] {
                                          if (const auto self = weak.lock())
                                            self->tell_progress(model, progress);
                                        });
                                      },
                                  .on_small =
                                      [&](const FetchedModel& small) {
                                        loop.post([weak, model, small, is_small] {
                                          if (const auto self = weak.lock())
                                            self->answer(model, small, is_small);
                                        });
                                      },
                                  .wants_whole =
                                      [&] {
                                        return job.target.kind >= FetchKind::kWhole ||
                                               job.wants_whole.load(std::memory_order_relaxed);
                                      }};
  const auto outcome =
      guarded([&] { return ModelFetch(around, model, job.target, job.cancelled, events).run(); });
  loop.post([weak, model, outcome] {
    if (const auto self = weak.lock()) self->on_ended(model, outcome);
  });
}

void ModelFetcher::Impl::tell_progress(const std::string& model, const FetchProgress& progress) {
  const auto found = jobs.find(model);
  if (found == jobs.end()) return;
  const auto requests = found->second->requests;  // a callback may cancel
  for (const Request& request : requests) {
    if (request.events.on_progress) request.events.on_progress(progress);
  }
}

template <class IsMeant>
void ModelFetcher::Impl::answer(const std::string& model, const Result<FetchedModel>& outcome,
                                const IsMeant& is_meant) {
  const auto found = jobs.find(model);
  if (found == jobs.end()) return;
  std::vector<Request> answered;
  std::erase_if(found->second->requests, [&](Request& request) {
    if (!is_meant(request.wish)) return false;
    answered.push_back(std::move(request));
    return true;
  });
  for (const Request& request : answered) request.events.on_done(outcome);
}

void ModelFetcher::Impl::on_ended(const std::string& model, const Result<FetchedModel>& outcome) {
  const auto found = jobs.find(model);
  if (found == jobs.end()) return;
  --running;
  // It has nothing left to do; one that could not be started did nothing.
  if (found->second->thread.joinable()) found->second->thread.join();
  Job& job = *found->second;
  const bool has_weights = !outcome.ok() || outcome.value().has_weights;
  // Requests added after the job was abandoned must not receive its error.
  if (!job.is_given_up || outcome.ok()) {
    answer(model, outcome, [target = job.target, has_weights](const FetchWish& wish) {
      return covers(target, has_weights, wish);
    });
  }
  if (job.requests.empty()) {
    jobs.erase(model);
  } else {
    waiting.push_back(model);
  }
  start_next();
  if (running == 0) streams.clear();
}

void ModelFetcher::Impl::cancel(uint64_t number) {
  for (auto& [model, job] : jobs) {
    std::erase_if(job->requests, [&](const Request& request) { return request.number == number; });
    if (!job->requests.empty()) continue;
    job->is_given_up = true;
    // relaxed: only a flag for its thread. on_ended() removes the job.
    job->cancelled.store(true, std::memory_order_relaxed);
  }
}

}  // namespace lockstep
