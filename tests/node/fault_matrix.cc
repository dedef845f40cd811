#include "node/fault_matrix.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "node/fault_signals.h"
#include "support/comes_true.h"
#include "support/process_holdings.h"
#include "support/sanitizers.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 3;
constexpr milliseconds kHeartbeat{1500};
constexpr milliseconds kProgress{1600};
constexpr milliseconds kRestartWait{5000};
constexpr double kLoadMs = 60;  // about the time from starting a process to its group
// The longest network outage while a group is formed: longer than its detection takes.
constexpr double kAwayMs = 2'500;
// A fault that is not noticed hits the next request; more than one retry is not excusable.
constexpr int kAttemptsMax = 3;
// The allocator keeps pages of the links of one or two epochs, 1 MiB each, however many rounds.
constexpr int kPrivateSlackKib = 4096;

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

const char* fault_name(Fault fault) {
  static constexpr const char* kNames[] = {"kill -9",         "SIGSTOP", "link down",
                                           "blackhole",       "slow",    "corrupt frame",
                                           "old-epoch frame", "version"};
  return kNames[static_cast<int>(fault)];
}

const char* phase_name(Phase phase) {
  static constexpr const char* kNames[] = {"load", "prefill", "decode"};
  return kNames[static_cast<int>(phase)];
}

std::string reason_to_skip(const Cell& cell, const FaultStage& stage) {
  const bool is_network = cell.fault == Fault::kLinkDown || cell.fault == Fault::kBlackhole;
  if (cell.link == LinkKind::kVerbs && !stage.has_rdma) {
    return "skipped: this build has no RDMA library for tests";
  }
  if (is_network && cell.link == LinkKind::kShm) return "cannot occur: memory has no wire";
  if (is_network && !stage.network.is_entered()) {
    return "skipped: no network of our own is permitted here, or there is no `ip`";
  }
  if (cell.fault != Fault::kVersion) return "";
  if (cell.link == LinkKind::kShm) {
    return "cannot occur: the ranks of one machine are started from one program";
  }
  if (cell.phase != Phase::kLoad) return "cannot occur: a version is told when a group is formed";
  return "";
}

namespace {

std::string fault_worker() {
  return std::string(LOCKSTEP_BINARY_DIR) + "/node_fault_worker";
}

// The ranks alternate between the ports of the emulated machine, so that a link connects the two
// ports instead of staying inside one device.
class GuestPlaces final : public WorkerPlaces {
 public:
  GuestPlaces() {
    for (size_t rank = 0; rank < kRanks; ++rank) {
      hosts_.emplace_back(PrivateNetwork::kGuestHosts[rank % 2]);
    }
  }
  Result<StartedWorker> start(int) override {
    return start_worker_process({.program = fault_worker()},
                                {.hosts = hosts_, .machine_ranks = kRanks});
  }
  std::string node_name(int) const override { return {}; }

 private:
  std::vector<std::string> hosts_;
};

}  // namespace

// One request and the tokens it received.
struct FaultBench::Stream {
  explicit Stream(milliseconds longest) : hang(longest) {}

  const milliseconds hang;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int32_t> tokens;
  std::optional<Result<FinishReason>> outcome;
  Clock::time_point ended_at;
  int ends = 0;

  // Waits until it has `count` tokens or has ended.
  bool wait(size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, hang, [&] { return outcome || tokens.size() >= count; });
  }
  bool has_ended() {
    std::lock_guard lock(mutex);
    return outcome.has_value();
  }
};

struct FaultBench::Holding {
  Holdings node;
  std::vector<Holdings> workers;         // (ranks)
  std::vector<std::array<int, 5>> rdma;  // (ranks): contexts, domains, regions, queues, pairs
};

FaultBench::FaultBench(LinkKind link, FaultStage& stage, uint64_t seed)
    : link_(link), stage_(stage), random_(seed) {}

FaultBench::~FaultBench() = default;

Status FaultBench::start() {
  GroupSupervisorOptions options;
  options.spec.model = std::string(LOCKSTEP_SOURCE_DIR) + "/models/stories260K";
  options.spec.shares = equal_shares(kRanks);
  options.spec.link.kind = link_;
  options.spec.threads = 1;
  options.timeouts = {kHeartbeat, kProgress, kHeartbeat};
  options.restart_wait = kRestartWait;
  options.losses_max = 0;  // the survivors' first report and its time are measured
  options.worker_program = fault_worker();
  if (stage_.network.is_guest()) options.places = std::make_shared<GuestPlaces>();
  group_ = TRY(GroupSupervisor::start(options));
  prompt_.assign(1, 1);
  while (prompt_.size() < static_cast<size_t>(stage_.prompt_tokens)) {
    prompt_.push_back(static_cast<int32_t>(3 + random_() % 500));
  }
  for (int i = 0; i < 3; ++i) {  // the first one is a warm-up
    const auto begin = Clock::now();
    const auto stream = start_stream();
    stream->wait(1);
    prefill_ms_ =
        i == 0 ? static_cast<double>(stage_.hang.count()) : std::min(prefill_ms_, ms_since(begin));
    stream->wait(static_cast<size_t>(stage_.answer_tokens) + 1);
    if (!stream->outcome || !stream->outcome->ok()) {
      return Error{ErrorCode::kInternal, "the group does not serve before any fault"};
    }
    expected_ = stream->tokens;
  }
  return check_paths();
}

// A group that has fallen back to TCP would test nothing of RDMA.
Status FaultBench::check_paths() const {
  for (const PairStatus& pair : group_->status().links) {
    const LinkPath path = pair.use.path;
    if (link_ != LinkKind::kVerbs || path == LinkPath::kVerbsRc || path == LinkPath::kVerbsUc)
      continue;
    return Error{ErrorCode::kInternal, fmt::format("ranks {} and {} are not joined by RDMA: {}",
                                                   pair.times.a, pair.times.b, pair.use.reason)};
  }
  return Ok{};
}

std::unique_ptr<FaultBench::Stream> FaultBench::start_stream() {
  auto stream = std::make_unique<Stream>(stage_.hang);
  GenerateRequest request;
  request.prompt = prompt_;
  request.max_tokens = stage_.answer_tokens;
  request.sampling = {.temperature = 1, .seed = 3};
  request.chunk = 2;  // many steps: more moments to strike
  const EventSink events = [to = stream.get()](RequestEvent event) {
    std::lock_guard lock(to->mutex);
    if (const auto* token = event.as<RequestEvent::Token>()) to->tokens.push_back(token->token);
    if (auto* ended = event.as<RequestEvent::Ended>()) {
      ++to->ends;
      to->outcome = std::move(ended->outcome);
      to->ended_at = Clock::now();
    }
    to->changed.notify_all();
  };
  Result<uint64_t> id = group_->generate(std::move(request), events);
  if (!id.ok()) {
    stream->outcome = Result<FinishReason>(id.error());
    stream->ended_at = Clock::now();
  }
  return stream;
}

CellResult FaultBench::run(const Cell& cell, int rounds) {
  CellResult result;
  // One-time allocations (the allocator's arenas) happen during the first losses.
  if (!holding_) {
    CellResult warm_up;
    for (int rank = 0; rank < kRanks; ++rank) {
      run_round({Fault::kKill, Phase::kDecode, link_}, warm_up);
      run_round({Fault::kCorrupt, Phase::kDecode, link_}, warm_up);
    }
    result.findings = std::move(warm_up.findings);
    holding_ = std::make_unique<Holding>(look());
  }
  for (int round = 0; round < rounds; ++round) {
    run_round(cell, result);
    ++result.rounds;
  }
  // A process holds the links of two epochs while it switches, so both must have been made.
  CellResult last;
  run_round({Fault::kCorrupt, Phase::kDecode, link_}, last);
  for (std::string& finding : last.findings) result.findings.push_back(std::move(finding));
  check_holding(result);
  return result;
}

void FaultBench::run_round(const Cell& cell, CellResult& result) {
  if (!wait_ready()) {
    result.findings.push_back("the group was not ready before the fault");
    return;
  }
  const int restarts = group_->status().restarts;
  const int rank = static_cast<int>(random_() % kRanks);
  // While a group is formed, a version mismatch is reported by the calling rank.
  const int struck = cell.fault == Fault::kVersion ? 1 + rank % (kRanks - 1) : rank;
  const auto strike_now = [&] {
    if (strike(cell.fault, struck)) return;
    result.findings.push_back("the network could not be taken away");
  };
  if (cell.fault == Fault::kVersion) strike_now();
  std::unique_ptr<Stream> stream;
  if (cell.phase == Phase::kLoad) {
    const int lost = (struck + 1) % kRanks;
    if (!reload(lost)) result.findings.push_back("a lost rank was not started again");
    stream = start_stream();  // held until the group serves
    pause(kLoadMs);
  } else {
    stream = start_stream();
    if (cell.phase == Phase::kPrefill) pause(prefill_ms_);
    // Most of the answer is left, for faults that take time to set up.
    if (cell.phase == Phase::kDecode)
      stream->wait(1 + random_() % static_cast<uint64_t>(stage_.answer_tokens / 2));
  }
  const auto begin = Clock::now();
  if (cell.fault != Fault::kVersion) strike_now();
  const bool is_network = cell.fault == Fault::kLinkDown || cell.fault == Fault::kBlackhole;
  // A device that retransmits loses nothing if the network is soon back, so messages are dropped.
  if (is_network && cell.phase != Phase::kLoad) stage_.rdma.lose_messages();
  if (cell.phase == Phase::kLoad) {
    // While the network is away the ranks stay apart, so it comes back at a random moment.
    if (is_network) pause(kAwayMs);
    if (cell.fault == Fault::kVersion && !wait_error("version")) {
      result.findings.push_back("no error speaks of the version: " + group_->status().last_error);
    }
    mend(cell.fault);
  }
  const milliseconds held = cell.phase == Phase::kLoad ? kRestartWait : milliseconds(0);
  check_stream(*stream, begin, stage_.report + held, result, "the stream");
  mend(cell.fault);
  bool is_right = false;
  for (int attempt = 0; attempt < kAttemptsMax && !is_right; ++attempt) {
    const auto repeated = Clock::now();
    const uint64_t messages = stage_.rdma.message_count();
    stream = start_stream();
    check_stream(*stream, repeated, stage_.report + kRestartWait, result, "the repeated request");
    is_right = stream->outcome && stream->outcome->ok();
    if (is_right) check_rdma(messages, result);
  }
  if (!is_right) result.findings.push_back("the repeated request was not served");
  result.recovery_ms.push_back(ms_since(begin));
  const int expected = cell.phase == Phase::kLoad ? 1 : 0;  // for the rank that was killed
  if (cell.fault == Fault::kSlow && group_->status().restarts != restarts + expected) {
    result.findings.push_back("a slow rank broke the group: " + group_->status().last_error);
  }
}

// Checks that it ended in time, exactly once, and with only a prefix of the right answer.
void FaultBench::check_stream(Stream& stream, Clock::time_point since, milliseconds limit,
                              CellResult& result, const char* what) {
  if (!stream.wait(static_cast<size_t>(stage_.answer_tokens) + 1)) {
    result.findings.push_back(fmt::format("{} hangs", what));
    std::fprintf(stderr, "hang: %s\n", what);
    std::exit(1);  // it refers to memory of this round
  }
  std::lock_guard lock(stream.mutex);
  const double took = std::chrono::duration<double, std::milli>(stream.ended_at - since).count();
  if (!stream.outcome->ok() && took > static_cast<double>(limit.count())) {
    result.findings.push_back(
        fmt::format("{} ended after {:.0f} ms, {} are allowed", what, took, limit.count()));
  }
  if (stream.ends > 1) result.findings.push_back(fmt::format("{} ended twice", what));
  const bool is_prefix = stream.tokens.size() <= expected_.size() &&
                         std::equal(stream.tokens.begin(), stream.tokens.end(), expected_.begin());
  if (!is_prefix) result.findings.push_back(fmt::format("{} has a wrong token", what));
  if (stream.outcome->ok()) {
    if (stream.tokens != expected_) {
      result.findings.push_back(fmt::format("{} ended well without the whole answer", what));
    }
    return;
  }
  ++result.broken;
  result.error_ms.push_back(took);
  result.last_error = stream.outcome->error().message;
  if (result.last_error.empty()) result.findings.push_back("an error says nothing");
}

// A group that has fallen back to TCP would test nothing of RDMA.
void FaultBench::check_rdma(uint64_t messages_before, CellResult& result) const {
  if (link_ != LinkKind::kVerbs || !stage_.rdma.is_played()) return;
  if (stage_.rdma.message_count() < messages_before + static_cast<uint64_t>(stage_.answer_tokens)) {
    result.findings.push_back("the repeated request did not go over RDMA");
  }
}

bool FaultBench::strike(Fault fault, int rank) {
  const auto pid = static_cast<pid_t>(group_->status().ranks[static_cast<size_t>(rank)].pid);
  switch (fault) {
    case Fault::kKill:
      ::kill(pid, SIGKILL);
      return true;
    case Fault::kStop:
      ::kill(pid, SIGSTOP);
      return true;
    case Fault::kLinkDown:
      return stage_.network.take_link_down();
    case Fault::kBlackhole:
      return stage_.network.swallow_packets();
    case Fault::kSlow:
      ::kill(pid, SIGRTMIN + kBeSlow);
      altered_pids_.push_back(pid);
      return true;
    case Fault::kCorrupt:
      ::kill(pid, SIGRTMIN + kArmCorrupt);
      return true;
    case Fault::kOldEpoch:
      ::kill(pid, SIGRTMIN + kArmOldEpoch);
      return true;
    case Fault::kVersion:
      ::kill(pid, SIGRTMIN + kSpeakOtherVersion);
      altered_pids_.push_back(pid);
      return true;
  }
  return true;
}

void FaultBench::mend(Fault fault) {
  if (fault == Fault::kLinkDown) stage_.network.bring_link_up();
  if (fault == Fault::kBlackhole) stage_.network.deliver_packets();
  stage_.rdma.deliver_messages();
  for (int64_t pid : altered_pids_) {
    ::kill(static_cast<pid_t>(pid), SIGRTMIN + kBeQuick);
    ::kill(static_cast<pid_t>(pid), SIGRTMIN + kSpeakOwnVersion);
  }
  altered_pids_.clear();
}

bool FaultBench::wait_ready() {
  return comes_true([&] { return group_->status().state == ModelStatus::State::kReady; },
                    stage_.hang);
}

bool FaultBench::wait_error(const std::string& part) {
  return comes_true([&] { return group_->status().last_error.find(part) != std::string::npos; },
                    std::max(kRestartWait, stage_.report));
}

// Kills a rank and waits until the replacing process is known.
bool FaultBench::reload(int rank) {
  const auto r = static_cast<size_t>(rank);
  const int64_t old_pid = group_->status().ranks[r].pid;
  static_cast<void>(strike(Fault::kKill, rank));
  return comes_true(
      [&] {
        const ModelStatus now = group_->status();
        return now.ranks.size() > r && now.ranks[r].pid != old_pid;
      },
      stage_.hang);
}

// Sleeps for a random part of `ms`: there is no event to wait for.
void FaultBench::pause(double ms) {
  const double part = std::uniform_real_distribution<double>(0, ms)(random_);
  const auto end = Clock::now() + std::chrono::duration<double, std::milli>(part);
  while (Clock::now() < end) ::poll(nullptr, 0, 1);
}

FaultBench::Holding FaultBench::look() const {
  Holding held{holdings(), {}, {}};
  for (const RankStatus& rank : group_->status().ranks) {
    held.workers.push_back(holdings_of(rank.pid));
    const FakeObjects* const objects = stage_.rdma.objects_of(rank.pid);
    held.rdma.emplace_back();
    if (objects == nullptr) continue;
    held.rdma.back() = {objects->contexts, objects->domains, objects->regions,
                        objects->completion_queues, objects->queue_pairs};
  }
  return held;
}

void FaultBench::check_holding(CellResult& result) {
  if (!wait_ready()) return result.findings.push_back("the group is not ready after the faults");
  const Holding now = look();
  const auto compare = [&](const std::string& who, const Holdings& before, const Holdings& after) {
    const auto differs = [&](const char* what, int was, int is) {
      if (was == is) return;
      result.findings.push_back(fmt::format("{} of {}: {} before, {} after", what, who, was, is));
    };
    differs("descriptors", before.descriptors, after.descriptors);
    differs("threads", before.threads, after.threads);
    differs("children", before.children, after.children);
    differs("shared regions", before.shared_maps, after.shared_maps);
    differs("segments in /dev/shm", before.shared_segments, after.shared_segments);
    differs("named maps", before.named_maps, after.named_maps);
    if (!kHasSanitizer && after.private_kib > before.private_kib + kPrivateSlackKib) {
      result.findings.push_back(fmt::format("private memory of {}: {} KiB before, {} KiB after",
                                            who, before.private_kib, after.private_kib));
    }
  };
  compare("the node", holding_->node, now.node);
  for (size_t rank = 0; rank < now.workers.size(); ++rank) {
    compare(fmt::format("rank {}", rank), holding_->workers[rank], now.workers[rank]);
    if (now.rdma[rank] != holding_->rdma[rank]) {
      result.findings.push_back(fmt::format("RDMA objects of rank {}: {} before, {} after", rank,
                                            fmt::join(holding_->rdma[rank], " "),
                                            fmt::join(now.rdma[rank], " ")));
    }
  }
}

}  // namespace lockstep
