// Messages between a node and its workers, and their encoding on the control channel. Prompts,
// events of requests and heartbeats are plain bytes, everything else is JSON. Pure functions; an
// invalid payload is kCorrupt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/data_address.h"
#include "collective/group/bench.h"
#include "collective/group/probe.h"
#include "engine/engine.h"
#include "node/wire/worker_setup.h"
#include "transport/link_use.h"
#include "transport/metered_link.h"

namespace lockstep {

enum class Message : uint8_t {
  // From the node.
  kSetup = 1,  // WorkerSetup: load
  kJoin,       // EpochSetup: form the group of this epoch; sent to a worker that is in none
  kPorts,      // every rank's RankListening, once all listen (tcp)
  kSubmit,     // a request for rank 0
  kCancel,     // a request id
  kLeave,      // the epoch is over: stop waiting for other ranks, keep what is loaded
  kStop,       // finish the step in flight and exit
  kAbort,      // stop waiting for other ranks and exit
  // From a worker.
  kLoaded = 32,  // LoadReport: it can join now
  kListening,    // a list with its RankListening
  kReady,        // EpochReport: it has joined
  kLeft,         // why it is no longer in an epoch; exactly one for each kJoin
  kHeartbeat,
  kEvent,   // a RequestEvent of rank 0's engine, see event_codec.h
  kTimes,   // results of a bench
  kPairs,   // results of a probe
  kFatal,   // why this worker is about to exit
  kPages,   // PageStoreCounts, when they have changed
  kBytes,   // LoadBytes, while a model is loaded, when they have changed
  kLinks,   // LinkReading of its links, when they have changed
  kDrafts,  // DraftCounts of rank 0, when they have changed
};

// How a worker finds the other ranks of an epoch. Sent with the descriptors of its links' memory,
// by peer rank (shm).
struct EpochSetup {
  uint64_t epoch = 0;
  std::string token;  // tcp: the secret that a connection of this group must present
};

// Where a rank waits for the calls of others.
struct RankListening {
  int port = 0;
  // Its addresses in data networks that an active RDMA port has; none if RDMA is not asked for.
  std::vector<std::string> rdma_hosts{};

  bool operator==(const RankListening&) const = default;
};

struct EpochReport {
  uint64_t epoch = 0;
  // Late arrivals from earlier epochs, since the worker started.
  uint64_t late_calls = 0;         // connections that were refused
  uint64_t late_frames = 0;        // frames over RDMA that were dropped
  std::vector<LinkUse> links{};    // of this rank, by peer
  std::vector<PairTimes> pairs{};  // rank 0: of all pairs, see formed_pairs()
};

struct Heartbeat {
  uint64_t ticks = 0;
  int32_t state = 0;  // Progress::state
};

// A rank's weights while they are loaded.
struct LoadBytes {
  uint64_t read = 0;
  uint64_t whole = 0;  // 0: not known yet

  bool operator==(const LoadBytes&) const = default;
};

std::string encode_epoch(const EpochSetup& setup);
Result<EpochSetup> decode_epoch(std::string_view payload);

std::string encode_epoch_report(const EpochReport& report);
Result<EpochReport> decode_epoch_report(std::string_view payload);

std::string encode_listening(std::span<const RankListening> ranks);
Result<std::vector<RankListening>> decode_listening(std::string_view payload);

// The id, the number of the prompt's tokens and these as bytes, then the options as JSON.
std::string encode_request(uint64_t id, const GenerateRequest& request);
Result<uint64_t> decode_request_id(std::string_view payload);
Result<std::pair<uint64_t, GenerateRequest>> decode_request(std::string_view payload);

std::string encode_report(const LoadReport& report);
Result<LoadReport> decode_report(std::string_view payload);

std::string encode_heartbeat(Heartbeat heartbeat);
Result<Heartbeat> decode_heartbeat(std::string_view payload);

std::string encode_load_bytes(const LoadBytes& bytes);
Result<LoadBytes> decode_load_bytes(std::string_view payload);

std::string encode_link_readings(std::span<const LinkReading> links);
// The peers are in ascending order.
Result<std::vector<LinkReading>> decode_link_readings(std::string_view payload);

std::string encode_page_counts(const PageStoreCounts& counts);
Result<PageStoreCounts> decode_page_counts(std::string_view payload);

std::string encode_draft_counts(const DraftCounts& counts);
Result<DraftCounts> decode_draft_counts(std::string_view payload);

std::string encode_id(uint64_t request);
Result<uint64_t> decode_id(std::string_view payload);

// The error of a whole worker or group; that of one request is a RequestEvent.
struct SentError {
  Error error;
};
std::string encode_error(const Error& error);
Result<SentError> decode_error(std::string_view payload);

std::string encode_times(const CollectiveTimes& times);
Result<CollectiveTimes> decode_times(std::string_view payload);

std::string encode_pairs(std::span<const PairTimes> pairs);
Result<std::vector<PairTimes>> decode_pairs(std::string_view payload);

}  // namespace lockstep
