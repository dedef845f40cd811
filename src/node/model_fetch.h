// ModelFetch: one model brought to this machine, from the hub and the other nodes together, or from
// the other nodes alone. A thread of node/model_fetcher.h runs it; it waits, with deadlines.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "hub/download.h"
#include "hub/model_cache.h"
#include "hub/settings.h"
#include "node/model_shelf.h"
#include "node/peer_pieces.h"
#include "node/piece_network.h"
#include "node/shared_fetch.h"

namespace lockstep {

struct FetchedModel {
  std::filesystem::path path;  // what can be loaded
  // Of the hub, or a digest of the files that were copied; empty where the path was here already.
  std::string commit;
  bool has_weights = true;  // false: the small files alone
};

struct FetchProgress {
  std::string note;  // what it waits for, as a sentence's beginning; empty: files come
  uint64_t bytes_there = 0;
  uint64_t bytes_wanted = 0;  // 0: not known yet
  std::string file;           // the one touched last
};

struct FetchSettings {
  HubSettings hub;
  std::filesystem::path home;        // $LOCKSTEP_HOME
  std::filesystem::path root = "/";  // for tests that play several machines on one disk
  uint64_t piece_bytes = kFilePieceBytes;
  int connections = 4;
  int retries = 7;                           // of the hub, in a row
  std::chrono::seconds patience{120};        // nothing comes from anywhere
  std::chrono::seconds list_wait{60};        // for others that are asking the hub
  std::chrono::seconds reading_wait{3'600};  // for others that read the files of a folder
  std::chrono::seconds lock_wait{3'600};     // for another process that downloads it
  SharedFetch::Times times{};
  PieceStreamTimes stream_times{};
};

class ModelFetch {
 public:
  struct Surroundings {
    EventLoop& loop;
    PieceNetwork& network;
    PieceStreamPool& streams;
    ModelShelf& shelf;
    FetchBoard& board;
    NodeId self;
    const FetchSettings& settings;
  };
  // Called on the thread of run().
  struct Events {
    std::function<void(const FetchProgress&)> on_progress;
    // The small files are there: enough for a node without weights.
    std::function<void(const FetchedModel&)> on_small;
    std::function<bool()> wants_whole;
  };

  // `cancelled` is set here, too, when a download fails.
  ModelFetch(Surroundings surroundings, std::string model, std::atomic<bool>& cancelled,
             Events events);

  // The whole model, or the small files alone where nobody wants more. kNotFound: neither here nor
  // at a node nor at the hub; the errors of pull_model().
  Result<FetchedModel> run();

  // Without asking anyone: what is here already. Null: nothing, or not all.
  static Result<std::optional<FetchedModel>> find_here(const std::string& model, bool is_small,
                                                       const FetchSettings& settings);
  // The whole model as it is here, be it a copy that is older than its original. kNotFound.
  static Result<std::filesystem::path> whole_here(const std::string& model,
                                                  const FetchSettings& settings);

 private:
  // Whose word counts for what the model is, the best first.
  enum class Origin { kOwner, kCopy, kUnfinished, kHub };
  struct Agreed {
    ModelFiles files;
    Origin origin = Origin::kHub;
  };
  Result<Agreed> agree();
  Result<std::optional<ModelFiles>> list_of_others(NodePieces& pieces, Origin origin);
  Result<std::optional<ModelFiles>> list_of_hub();
  Error nobody_has_it() const;
  Result<FetchedModel> bring(ModelFiles files);
  Result<ModelLock> take_lock();
  Status bring_files(PieceStore& store, std::span<const HubFile> files);
  bool nobody_can_help() const;
  std::unique_ptr<PieceSource> make_source();
  NodePieces::Options pieces_options() const;
  Status pause();
  void tell(const std::string& note);

  const Surroundings around_;
  const FetchSettings& settings_;
  const std::string model_;
  const bool is_local_;
  std::atomic<bool>& cancelled_;
  const Events events_;
  std::filesystem::path cache_;
  ModelId id_;
  std::shared_ptr<SharedFetch> fetch_;
};

}  // namespace lockstep
