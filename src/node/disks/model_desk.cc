#include "node/disks/model_desk.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/threads/guarded.h"
#include "hub/model_cache.h"
#include "node/disks/disk_messages.h"
#include "node/worker/disk_thread.h"

namespace lockstep {
namespace {

using Answer = Result<DiskAnswer>;
using Done = std::function<void(Answer)>;

Error late(std::chrono::milliseconds limit) {
  return {ErrorCode::kTimeout, fmt::format("it has not answered within {:.0f} s",
                                           static_cast<double>(limit.count()) / 1e3)};
}

// Copies of other nodes' folders lie in a cache of their own.
Result<uint64_t> remove_here(const HubSettings& hub, const std::filesystem::path& home,
                             const ModelId& id) {
  auto removed = remove_model(hub, id);
  if (removed.ok() || removed.error().code != ErrorCode::kNotFound) return removed;
  HubSettings copies = hub;
  copies.cache = home / "models";
  auto copy = remove_model(copies, id);
  return copy.ok() || copy.error().code != ErrorCode::kNotFound ? copy : removed;
}

// Answers that several threads give to one that waits until a deadline; whoever is late is ignored.
class Answers {
 public:
  explicit Answers(size_t count) : answers_(count) {}

  void give(size_t index, Answer answer) {
    const std::lock_guard lock(mutex_);
    if (answers_[index]) return;
    answers_[index] = std::move(answer);
    ++given_;
    changed_.notify_all();
  }
  std::vector<std::optional<Answer>> wait(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return given_ == answers_.size(); });
    return answers_;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::optional<Answer>> answers_;
  size_t given_ = 0;
};

}  // namespace

// Its maps belong to the loop's thread.
struct ModelDesk::Impl : std::enable_shared_from_this<Impl> {
  // A question to another node.
  struct Call {
    DiskAsk ask;
    FrameConnection connection;
    EventLoop::Timer timer;
    Done done;
  };

  Impl(Surroundings own, ModelPulls& own_pulls) : around(std::move(own)), pulls(own_pulls) {}

  void answer_here(const DiskAsk& ask, Done done);
  Result<ModelId> removable(const DiskAsk& ask) const;
  void call(const NodeId& node, const DiskAsk& ask, std::chrono::milliseconds limit, Done done);
  void on_open(uint64_t number, Result<FrameConnection> ready);
  void end_call(uint64_t number, Answer answer);
  void on_stream(FrameConnection connection);
  void on_ask(uint64_t number, std::string_view frame);
  void end_asker(uint64_t number, const std::string& answer);
  void close();

  const Surroundings around;
  ModelPulls& pulls;
  DiskThread disk{kDiskThreads};
  bool is_closed = false;
  uint64_t last_number = 0;
  std::map<uint64_t, Call> calls;
  std::map<uint64_t, FrameConnection> askers;
};

Result<ModelId> ModelDesk::Impl::removable(const DiskAsk& ask) const {
  const ModelId id = TRY(parse_model_id(ask.model));
  if (around.is_used && around.is_used(id)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is loaded, or is to be: unload it first", ask.model)};
  }
  for (const ModelPull& pull : pulls.list()) {
    const auto pulled = parse_model_id(pull.model);
    const bool is_running = pull.phase != PullPhase::kDone && pull.phase != PullPhase::kFailed;
    if (is_running && pulled.ok() && pulled.value().repository == id.repository) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is being downloaded: stop that first", pull.model)};
    }
  }
  return id;
}

// On the loop's thread. `done` is called on the disk's or the loop's, or never if a disk hangs.
void ModelDesk::Impl::answer_here(const DiskAsk& ask, Done done) {
  if (is_closed) return;
  ModelId id;
  if (ask.kind == DiskAsk::Kind::kRemove) {
    auto meant = removable(ask);
    if (!meant.ok()) return done(meant.error());
    id = std::move(meant.value());
  }
  const bool is_posted =
      disk.post([this, ask, id, done, hub = around.hub, home = around.home]() -> DiskThread::Then {
        const auto work = [&]() -> Answer {
          DiskAnswer answer;
          if (ask.kind == DiskAsk::Kind::kList) {
            answer.disk = read_disk(hub, home);
          } else {
            answer.removed_bytes = TRY(remove_here(hub, home, id));
          }
          return answer;
        };
        Answer answer = guarded(work);
        // Runs only while this object, which owns the thread, exists.
        return [this, ask, done, answer = std::move(answer)] {
          if (ask.kind == DiskAsk::Kind::kRemove) around.fetcher.forget(ask.model);
          done(answer);
        };
      });
  if (!is_posted) done(Error{ErrorCode::kExhausted, "its disk has too much to do"});
}

// On the loop's thread; `done` is called there, once, unless this ends first.
void ModelDesk::Impl::call(const NodeId& node, const DiskAsk& ask, std::chrono::milliseconds limit,
                           Done done) {
  if (is_closed) return;
  const uint64_t number = ++last_number;
  const auto weak = weak_from_this();
  calls.emplace(number, Call{.ask = ask,
                             .connection = {},
                             .timer = around.loop.call_after(limit,
                                                             [weak, number, limit] {
                                                               if (const auto self = weak.lock()) {
                                                                 self->end_call(number,
                                                                                late(limit));
                                                               }
                                                             }),
                             .done = std::move(done)});
  around.network.open_stream(node, {.kind = kDiskChannel, .purpose = {}},
                             [weak, number](Result<FrameConnection> ready) {
                               if (const auto self = weak.lock()) {
                                 self->on_open(number, std::move(ready));
                               } else if (ready.ok()) {
                                 ready.value().close();
                               }
                             });
}

void ModelDesk::Impl::on_open(uint64_t number, Result<FrameConnection> ready) {
  const auto found = calls.find(number);
  if (found == calls.end()) {
    if (ready.ok()) ready.value().close();
    return;
  }
  if (!ready.ok()) return end_call(number, ready.error());
  Call& call = found->second;
  call.connection = ready.value();
  const auto weak = weak_from_this();
  call.connection.set_events({.on_frame =
                                  [weak, number, ask = call.ask](const std::string& frame) {
                                    if (const auto self = weak.lock()) {
                                      self->end_call(number, decode_disk_answer(ask, frame));
                                    }
                                  },
                              .on_close =
                                  [weak, number](const Error& error) {
                                    if (const auto self = weak.lock())
                                      self->end_call(number, error);
                                  },
                              .on_drained = {}});
  call.connection.send(encode_disk_ask(call.ask));
}

void ModelDesk::Impl::end_call(uint64_t number, Answer answer) {
  auto ended = calls.extract(number);
  if (ended.empty()) return;
  ended.mapped().connection.close();
  ended.mapped().done(std::move(answer));
}

void ModelDesk::Impl::on_stream(FrameConnection connection) {
  if (is_closed || askers.size() >= kAskersMax) return connection.close();
  const uint64_t number = ++last_number;
  const auto weak = weak_from_this();
  connection.set_events({.on_frame =
                             [weak, number](const std::string& frame) {
                               if (const auto self = weak.lock()) self->on_ask(number, frame);
                             },
                         .on_close =
                             [weak, number](const Error&) {
                               if (const auto self = weak.lock()) self->askers.erase(number);
                             },
                         .on_drained = {}});
  askers.emplace(number, std::move(connection));
}

// One question on a stream: what follows it is not read.
void ModelDesk::Impl::on_ask(uint64_t number, std::string_view frame) {
  const auto found = askers.find(number);
  if (found == askers.end()) return;
  const auto ask = decode_disk_ask(frame);
  if (!ask.ok()) {
    auto ended = askers.extract(found);
    return ended.mapped().close();
  }
  found->second.pause();
  answer_here(ask.value(), [weak = weak_from_this(), &loop = around.loop, number,
                            asked = ask.value()](const Answer& answer) {
    loop.post([weak, number, text = encode_disk_answer(asked, answer)] {
      if (const auto self = weak.lock()) self->end_asker(number, text);
    });
  });
}

void ModelDesk::Impl::end_asker(uint64_t number, const std::string& answer) {
  auto ended = askers.extract(number);
  if (ended.empty()) return;
  ended.mapped().send(answer);
  ended.mapped().finish();
}

void ModelDesk::Impl::close() {
  is_closed = true;
  auto ended_calls = std::exchange(calls, {});
  auto ended_askers = std::exchange(askers, {});
  for (auto& [number, call] : ended_calls) {
    call.connection.close();
    call.done(Error{ErrorCode::kCancelled, "this node is stopping"});
  }
  for (auto& [number, asker] : ended_askers) asker.close();
}

ModelDesk::ModelDesk(Surroundings surroundings)
    : pulls_(surroundings.fetcher),
      impl_(std::make_shared<Impl>(std::move(surroundings), pulls_)) {}

ModelDesk::~ModelDesk() {
  impl_->around.loop.must_run([this] { impl_->close(); });
}

const NodeId& ModelDesk::self() const {
  return impl_->around.self;
}

std::vector<ModelDesk::NodeDisk> ModelDesk::disks() {
  std::vector<NodeId> nodes = impl_->around.network.connected();
  std::erase(nodes, impl_->around.self);
  nodes.insert(nodes.begin(), impl_->around.self);
  const auto answers = std::make_shared<Answers>(nodes.size());
  const std::chrono::milliseconds limit = impl_->around.times.list;
  impl_->around.loop.post([weak = std::weak_ptr(impl_), nodes, answers, limit] {
    const auto impl = weak.lock();
    for (size_t i = 0; impl && i < nodes.size(); ++i) {
      const Done done = [answers, i](Answer answer) { answers->give(i, std::move(answer)); };
      const DiskAsk ask{.kind = DiskAsk::Kind::kList};
      i == 0 ? impl->answer_here(ask, done) : impl->call(nodes[i], ask, limit, done);
    }
  });
  std::vector<NodeDisk> disks;
  const auto given = answers->wait(limit);
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto disk = [&]() -> Result<DiskReport> {
      if (!given[i]) return late(limit);
      if (!given[i]->ok()) return given[i]->error();
      return given[i]->value().disk;
    };
    disks.push_back({nodes[i], disk()});
  }
  return disks;
}

Result<uint64_t> ModelDesk::remove(const std::string& model, const NodeId& node) {
  const DiskAsk ask{.kind = DiskAsk::Kind::kRemove, .model = model};
  const auto answers = std::make_shared<Answers>(1);
  const std::chrono::milliseconds limit = impl_->around.times.remove;
  impl_->around.loop.post([weak = std::weak_ptr(impl_), ask, node, answers, limit] {
    const auto impl = weak.lock();
    if (!impl) return;
    const Done done = [answers](Answer answer) { answers->give(0, std::move(answer)); };
    node == impl->around.self ? impl->answer_here(ask, done) : impl->call(node, ask, limit, done);
  });
  const auto given = answers->wait(limit);
  if (!given[0]) return late(limit);
  if (!given[0]->ok()) return given[0]->error();
  return given[0]->value().removed_bytes;
}

Result<std::filesystem::path> ModelDesk::files_of(const std::string& model) const {
  FetchSettings settings;
  settings.hub = impl_->around.hub;
  settings.home = impl_->around.home;
  return ModelFetch::table_here(model, settings);
}

Result<std::vector<FoundModel>> ModelDesk::search(const std::string& words, int models_max) const {
  return search_hub(impl_->around.hub, words, models_max, nullptr);
}

void ModelDesk::on_stream(FrameConnection connection) {
  impl_->on_stream(std::move(connection));
}

bool is_read_from(const std::string& path, const ModelId& id) {
  const std::string repository = repository_of_path(path);
  if (!repository.empty()) return repository == id.repository;
  const auto own = parse_model_id(path);
  if (!own.ok() || own.value().repository != id.repository) return false;
  return id.revision.empty() || id.revision == own.value().revision_or_default();
}

}  // namespace lockstep
