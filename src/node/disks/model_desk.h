// ModelDesk: what the API asks of models on disks: which lie on which node, downloads to this one,
// and removing. Other nodes are asked over streams of the cluster, each with a deadline, and answer
// the same questions of others. A disk may hang: it is read on threads that nobody waits for
// longer.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/node_id.h"
#include "hub/files/model_id.h"
#include "hub/http/hub_search.h"
#include "net/event_loop.h"
#include "net/frames/frame_connection.h"
#include "node/disks/disk_report.h"
#include "node/disks/model_pulls.h"
#include "node/fetch/model_fetcher.h"
#include "node/fetch/piece_network.h"

namespace lockstep {

struct ModelDeskTimes {
  std::chrono::milliseconds list{3'000};
  std::chrono::milliseconds remove{20'000};
};

class ModelDesk {
 public:
  static constexpr size_t kAskersMax = 16;  // other nodes' questions at a time; more are closed
  static constexpr size_t kDiskThreads = 4;

  struct Surroundings {
    EventLoop& loop;
    PieceNetwork& network;
    ModelFetcher& fetcher;
    NodeId self;
    HubSettings hub;
    std::filesystem::path home;
    // Whether a model that is loaded, or is to be, needs it; on the loop's thread.
    std::function<bool(const ModelId&)> is_used;
    ModelDeskTimes times{};
  };
  struct NodeDisk {
    NodeId node;
    Result<DiskReport> disk;
  };

  // All that it refers to must outlive it; made and destroyed on any thread but the loop's.
  explicit ModelDesk(Surroundings surroundings);
  ~ModelDesk();

  // This node and those connected, this one first, within ModelDeskTimes::list. Not from the loop's
  // thread, here and below.
  std::vector<NodeDisk> disks();
  // The bytes freed. kInvalidArgument if it is used or being downloaded, kNotFound, kTimeout.
  Result<uint64_t> remove(const std::string& model, const NodeId& node);

  // The files of a model on this disk, or those that planning needs. Reads the disk. kNotFound.
  Result<std::filesystem::path> files_of(const std::string& model) const;

  // At this node's hub; see hub/http/hub_search.h. Waits for kSearchTime at most.
  Result<std::vector<FoundModel>> search(const std::string& words, int models_max) const;

  ModelPulls& pulls() { return pulls_; }
  const NodeId& self() const;

  // Loop's thread: a stream of kind kDiskChannel from another node.
  void on_stream(FrameConnection connection);

 private:
  struct Impl;
  ModelPulls pulls_;
  std::shared_ptr<Impl> impl_;
};

// Whether a model loaded from `path` (DesiredEntry.path) reads files that removing `id` takes away.
bool is_read_from(const std::string& path, const ModelId& id);

}  // namespace lockstep
