// The cells of the fault matrix: which fault, when, over which kind of link. A group of real worker
// processes serves the small bundled model; in each round one rank or its network is broken at a
// random moment. See docs/testing.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "node/group/group_supervisor.h"
#include "node/played_rdma.h"
#include "node/private_network.h"

namespace lockstep {

enum class Fault { kKill, kStop, kLinkDown, kBlackhole, kSlow, kCorrupt, kOldEpoch, kVersion };
enum class Phase { kLoad, kPrefill, kDecode };
inline constexpr Fault kFaults[] = {Fault::kKill,      Fault::kStop,   Fault::kLinkDown,
                                    Fault::kBlackhole, Fault::kSlow,   Fault::kCorrupt,
                                    Fault::kOldEpoch,  Fault::kVersion};
inline constexpr Phase kPhases[] = {Phase::kLoad, Phase::kPrefill, Phase::kDecode};
inline constexpr LinkKind kLinks[] = {LinkKind::kShm, LinkKind::kTcp, LinkKind::kVerbs};

const char* fault_name(Fault fault);
const char* phase_name(Phase phase);

struct Cell {
  Fault fault;
  Phase phase;
  LinkKind link;
};

// The machine-dependent settings of the cells.
struct FaultStage {
  PrivateNetwork network;
  PlayedRdma rdma;  // not simulated where there are real devices
  bool has_rdma = false;
  // The longest time from a fault to the end of a stream. An emulated machine is slow.
  std::chrono::milliseconds report{2000};
  int prompt_tokens = 120;
  int answer_tokens = 100;
  // Longer than anything here takes: a wait that reaches it counts as a hang.
  std::chrono::milliseconds hang{30'000};
};

// Why this cell cannot occur, or is not run here; empty if it is run.
std::string reason_to_skip(const Cell& cell, const FaultStage& stage);

// The results of one cell's rounds.
struct CellResult {
  int rounds = 0;
  int broken = 0;                   // streams that ended with an error
  std::vector<double> error_ms;     // from the fault to the end of a broken stream
  std::vector<double> recovery_ms;  // from the fault to the end of the repeated request
  std::string last_error;
  std::vector<std::string> findings;  // violations
};

// One group over one kind of link, and the rounds run on it.
class FaultBench {
 public:
  FaultBench(LinkKind link, FaultStage& stage, uint64_t seed);
  ~FaultBench();

  // Starts the group and gets the reference answers.
  Status start();
  CellResult run(const Cell& cell, int rounds);

 private:
  struct Stream;
  struct Holding;  // resources that the node and its workers hold
  using Clock = std::chrono::steady_clock;

  void run_round(const Cell& cell, CellResult& result);
  std::unique_ptr<Stream> start_stream();
  void check_stream(Stream& stream, Clock::time_point since, std::chrono::milliseconds limit,
                    CellResult& result, const char* what);
  Status check_paths() const;
  void check_rdma(uint64_t messages_before, CellResult& result) const;
  // False if the network could not be taken down.
  [[nodiscard]] bool strike(Fault fault, int rank);
  void mend(Fault fault);
  bool wait_ready();
  bool wait_error(const std::string& part);
  bool reload(int rank);
  Holding look() const;
  void check_holding(CellResult& result);
  void pause(double ms);

  const LinkKind link_;
  FaultStage& stage_;
  std::mt19937_64 random_;
  std::unique_ptr<GroupSupervisor> group_;
  std::vector<int32_t> prompt_;
  std::vector<int32_t> expected_;
  std::unique_ptr<Holding> holding_;
  std::vector<int64_t> altered_pids_;  // that misbehave until mend()
  double prefill_ms_ = 0;              // the shortest so far
};

}  // namespace lockstep
