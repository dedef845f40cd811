// A worker program whose engine computes nothing: rank 0 answers prompt token p with p + 1, p + 2,
// ... and passes every step through the group, so that links, heartbeats and failures are real.
// Prompts that start with one of the tokens in test_tokens.h make a rank misbehave; the model's
// folder name makes loading fail.
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "node/test_tokens.h"
#include "node/worker/worker.h"

namespace lockstep {
namespace {

// Sent by rank 0 to the others before each step.
struct StepOrder {
  int32_t command = 0;  // kStopOrder, or the first token of the current prompt
  int32_t rank = 0;     // the rank that misbehaves
};
constexpr int32_t kStopOrder = -1;
constexpr size_t kOrderBytesMax = 64;

class EchoEngine final : public Engine {
 public:
  EchoEngine(const EngineOptions& options, Group group)
      : progress_(*options.progress), group_(std::move(group)) {
    report_.weight_bytes = 1000 + static_cast<uint64_t>(group_.rank());
    report_.read_bytes = 1000;
    report_.context = options.spec.context > 0 ? options.spec.context : 4096;
    report_.vocab_size = 100'000;
  }

  const LoadReport& report() const override { return report_; }

  void submit(uint64_t id, MakeRequest make) override {
    Result<GenerateRequest> request = make();
    if (!request.ok()) std::abort();
    std::lock_guard lock(mutex_);
    sequences_.push_back({id, std::move(request.value()), 0});
    changed_.notify_all();
  }

  void cancel(uint64_t id) override {
    std::lock_guard lock(mutex_);
    cancelled_.insert(id);
    for (Sequence& sequence : held_) sequences_.push_back(std::move(sequence));  // to be checked
    held_.clear();
    changed_.notify_all();
  }

  void stop() override {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }

  void leave() override {
    std::lock_guard lock(mutex_);
    leaving_ = true;
    changed_.notify_all();
  }

  Status rejoin(Group group) override {
    std::lock_guard lock(mutex_);
    group_ = std::move(group);
    sequences_.clear();
    held_.clear();
    cancelled_.clear();
    leaving_ = false;
    return Ok{};
  }

  Status run(const EventSink& events) override {
    return group_.rank() == 0 ? lead(events) : follow();
  }

 private:
  struct Sequence {
    uint64_t id = 0;
    GenerateRequest request;
    int produced = 0;
  };

  static bool is_held(const Sequence& sequence) {
    const std::vector<int32_t>& prompt = sequence.request.prompt;
    return prompt.size() == 2 && prompt[0] == kHeldToken && sequence.produced == kHeldTokens;
  }

  // Each step gives one token to the oldest sequence, which then moves to the end.
  Status lead(const EventSink& events) {
    while (true) {
      std::unique_lock lock(mutex_);
      progress_.set(Progress::kIdle);
      changed_.wait(lock, [this] { return stopping_ || leaving_ || !sequences_.empty(); });
      progress_.set(Progress::kComputing);
      if (leaving_) return Error{ErrorCode::kCancelled, "the epoch is over"};
      if (stopping_) return tell({kStopOrder, 0});
      Sequence sequence = std::move(sequences_.front());
      sequences_.pop_front();
      const bool cancelled = cancelled_.erase(sequence.id) != 0;
      lock.unlock();
      if (cancelled) {
        events({sequence.id,
                RequestEvent::Ended{Error{ErrorCode::kCancelled, "the request was cancelled"}}});
        continue;
      }
      if (is_held(sequence)) {
        lock.lock();
        held_.push_back(std::move(sequence));
        continue;
      }
      const std::vector<int32_t>& prompt = sequence.request.prompt;
      const StepOrder order{prompt[0], prompt.size() > 1 ? prompt[1] : 0};
      TRY(tell(order));
      TRY(compute(order));
      if (advance(sequence, events)) {
        lock.lock();
        sequences_.push_back(std::move(sequence));
      }
    }
  }

  // True while the sequence continues.
  bool advance(Sequence& sequence, const EventSink& events) {
    const GenerateRequest& request = sequence.request;
    if (sequence.produced == 0 && request.prompt_logits) {
      for (int32_t token : request.prompt) {
        std::vector<float> row(1000, static_cast<float>(token));
        events({sequence.id, RequestEvent::Row{std::move(row)}});
      }
    }
    if (sequence.produced == 0) {
      events({sequence.id, RequestEvent::Started{static_cast<int>(request.prompt.size()) - 1}});
    }
    const int32_t token = request.prompt.back() + ++sequence.produced;
    for (int32_t stop : request.stop_ids) {
      if (token == stop) {
        events({sequence.id, RequestEvent::Ended{FinishReason::kStop}});
        return false;
      }
    }
    if (request.max_tokens > 0) events({sequence.id, RequestEvent::Token{token}});
    if (sequence.produced < request.max_tokens) return true;
    events({sequence.id, RequestEvent::Ended{FinishReason::kLength}});
    return false;
  }

  Status follow() {
    std::vector<std::byte> bytes;
    while (true) {
      progress_.set(Progress::kIdle);
      TRY(group_.wait_for(0));
      TRY(group_.broadcast(0, bytes, kOrderBytesMax));
      StepOrder order;
      std::memcpy(&order, bytes.data(), sizeof(order));
      if (order.command == kStopOrder) return Ok{};
      progress_.set(Progress::kComputing);
      TRY(compute(order));
    }
  }

  Status tell(StepOrder order) {
    std::vector<std::byte> bytes(sizeof(order));
    std::memcpy(bytes.data(), &order, sizeof(order));
    return group_.size() == 1 ? Status(Ok{}) : group_.broadcast(0, bytes, kOrderBytesMax);
  }

  // Every rank sends its number to every other, as an all-reduce does; before that the named rank
  // misbehaves.
  Status compute(StepOrder order) {
    if (order.rank == group_.rank()) misbehave(order.command);
    if (order.rank == group_.rank() && order.command == kGiveUpToken) {
      return Error{ErrorCode::kCorrupt, "rank 9: a frame is of another world"};
    }
    if (order.rank == group_.rank() && order.command == kTireToken) {
      return Error{ErrorCode::kTimeout, "rank 9: no message within 10 ms"};
    }
    if (group_.size() == 1) return Ok{};
    std::vector<int32_t> numbers(static_cast<size_t>(group_.size()));
    numbers[static_cast<size_t>(group_.rank())] = group_.rank();
    std::vector<std::span<std::byte>> parts;
    for (int32_t& number : numbers) {
      parts.push_back(std::as_writable_bytes(std::span<int32_t>(&number, 1)));
    }
    TRY(group_.all_gather(parts));
    for (int rank = 0; rank < group_.size(); ++rank) {
      if (numbers[static_cast<size_t>(rank)] != rank) std::abort();
    }
    return Ok{};
  }

  void misbehave(int32_t command) {
    switch (command) {
      case kAbortToken:
        std::abort();
      case kExitToken:
        ::_exit(7);
      case kCrashToken:
        ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would turn it into an exit
        ::raise(SIGSEGV);
        return;
      case kHangToken:
        while (true) ::pause();
      case kSlowToken:
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        progress_.tick();
        return;
      default:
        return;
    }
  }

  Progress& progress_;
  Group group_;
  LoadReport report_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sequence> sequences_;
  std::vector<Sequence> held_;
  std::set<uint64_t> cancelled_;
  bool stopping_ = false;
  bool leaving_ = false;
};

Result<std::unique_ptr<Engine>> load_echo_engine(const EngineOptions& options, Group group) {
  const std::string name = options.spec.model.filename().string();
  if (name == "bad_model" && group.rank() == group.size() - 1) {
    return Error{ErrorCode::kCorrupt, "model.safetensors is cut off after 12 bytes"};
  }
  if (name == "crashing_model") std::abort();
  if (name == "huge_model") throw std::bad_alloc();
  return std::unique_ptr<Engine>(new EchoEngine(options, std::move(group)));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--control-fd") {
      const auto flags =
          lockstep::parse_worker_arguments({argv + i, static_cast<size_t>(argc - i)});
      if (!flags.ok()) return 2;
      return lockstep::worker_main(flags.value(), lockstep::load_echo_engine);
    }
  }
  return 2;
}
