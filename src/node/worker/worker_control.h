// WorkerControl: a worker's end of the control channel. Its thread reads the node's messages,
// passes requests to the engine, encoded as they are, and sends a heartbeat every 250 ms, whatever
// the computing thread does. When the node is gone the process exits at once. Any thread may call
// send().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/threads/wake_pipe.h"
#include "engine/engine.h"
#include "node/wire/control_channel.h"
#include "node/wire/messages.h"
#include "transport/metered_link.h"

namespace lockstep {

// An epoch to join, and the memory of each link, by peer rank (shm).
struct EpochOrder {
  EpochSetup setup;
  std::vector<UniqueFd> regions;
};

class WorkerControl {
 public:
  static constexpr std::chrono::milliseconds kHeartbeatInterval{250};

  // Starts the thread.
  static Result<std::unique_ptr<WorkerControl>> open(UniqueFd fd);
  ~WorkerControl();
  WorkerControl(const WorkerControl&) = delete;
  WorkerControl& operator=(const WorkerControl&) = delete;

  // The node's messages before the engine works, in the protocol's order. kCancelled from
  // wait_ports() when the epoch ends first.
  Result<std::string> wait_setup(std::chrono::milliseconds limit);
  Result<std::string> wait_ports(std::chrono::milliseconds limit);
  // For a worker that is in no epoch. Nullopt: stop or abort arrived instead.
  Result<std::optional<EpochOrder>> wait_join(std::chrono::milliseconds limit);

  // For a worker whose work is done: waits for stop or abort.
  void wait_stop(std::chrono::milliseconds limit);
  // Stop or abort has arrived.
  bool is_stopped() const;

  // From now on requests go to `engine`; null before it is destroyed.
  void attach(Engine* engine);
  // From now on heartbeats report the links of the current group, which `meters` measure.
  void watch(std::shared_ptr<const LinkMeters> meters);

  // Blocks while the node does not read; ends the process if that lasts long.
  void send(Message type, std::string_view payload);

  Progress& progress() { return progress_; }
  // Set when the epoch is over, until the next join; for good by an abort.
  const std::atomic<bool>* cancelled() const { return &cancelled_; }

 private:
  WorkerControl(UniqueFd fd, WakePipe wake);
  void read_and_beat();
  void beat();
  std::optional<PageStoreCounts> page_counts();
  DraftCounts draft_counts();
  std::vector<LinkReading> link_readings() const;
  void handle(ControlFrame frame);
  void end_epoch();
  Status handle_join(const ControlFrame& frame);
  Status handle_request(ControlFrame frame);

  UniqueFd fd_;
  WakePipe wake_;
  FrameReader reader_;                   // the thread's
  PageStoreCounts told_page_counts_;     // the thread's
  DraftCounts told_drafts_;              // likewise
  LoadBytes told_bytes_;                 // likewise
  std::vector<LinkReading> told_links_;  // likewise
  Progress progress_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> finished_{false};

  std::mutex send_mutex_;
  FrameWriter writer_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable arrived_;
  std::string setup_;
  std::optional<EpochOrder> join_;
  std::string ports_;
  Engine* engine_ = nullptr;
  std::shared_ptr<const LinkMeters> meters_;
  bool is_stopped_ = false;
  bool is_aborted_ = false;

  std::thread thread_;
};

}  // namespace lockstep
