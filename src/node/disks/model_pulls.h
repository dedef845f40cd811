// ModelPulls: the downloads that somebody asked this node for. Each is a fetch of ModelFetcher, so
// a few run at a time, pieces come from the hub or from other nodes, and a download that was ended
// goes on where it stopped when it is asked for again. A download goes on without the one who asked
// for it. Any thread, unless a function says otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/meters/rate_window.h"
#include "base/result.h"
#include "node/fetch/model_fetcher.h"

namespace lockstep {

enum class PullPhase : uint8_t { kWaiting, kListing, kDownloading, kChecking, kDone, kFailed };
std::string_view pull_phase_name(PullPhase phase);

struct ModelPull {
  std::string model;
  PullPhase phase = PullPhase::kWaiting;
  std::string sentence;                 // what it waits for, or why it failed; may be empty
  uint64_t read_bytes = 0;              // on this disk, in whole pieces
  std::optional<uint64_t> whole_bytes;  // nullopt: not known yet
  double bytes_s = 0;                   // received over the last 5 s
  std::optional<double> seconds_left;   // nullopt: unknown, or nothing arrives
  std::string source;                   // "hub", "neighbour", "disk"; empty: nothing has come yet
};

class ModelPulls {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kRunningMax = 16;  // kExhausted beyond; a few of them at a time
  static constexpr size_t kEndedMax = 16;    // shown; the oldest are forgotten
  static constexpr std::chrono::seconds kDoneShown{60};

  explicit ModelPulls(ModelFetcher& fetcher)
      : state_(std::make_shared<State>()), fetcher_(fetcher) {}
  // Callbacks of the fetcher may still come; they do nothing.
  ~ModelPulls() = default;

  // A model of a hub: "org/name". Ok also if it is being pulled already. kInvalidArgument.
  Status start(const std::string& model);
  // Ends the download, keeping what has come; or forgets one that has ended. kNotFound.
  Status stop(const std::string& model);
  bool is_running(const std::string& model) const;
  // The oldest first.
  std::vector<ModelPull> list(Clock::time_point now = Clock::now()) const;

 private:
  struct Item {
    uint64_t number = 0;  // of the attempt
    uint64_t fetch = 0;   // of the fetcher
    ModelPull shown;
    RateWindow rate;
    uint64_t from_hub = 0, from_nodes = 0;
    std::optional<Clock::time_point> ended_at;
  };
  struct State {
    mutable std::mutex mutex;  // guards what follows
    std::map<std::string, Item> items;
    uint64_t last_number = 0;

    Item* find(const std::string& model, uint64_t number);
    void note(const std::string& model, uint64_t number, const FetchProgress& progress);
    void end(const std::string& model, uint64_t number, const Result<FetchedModel>& outcome);
    void forget_ended(Clock::time_point now);
  };

  const std::shared_ptr<State> state_;
  ModelFetcher& fetcher_;
};

}  // namespace lockstep
