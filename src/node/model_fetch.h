// ModelFetch: one model brought to this machine, from the hub and the other nodes together, or from
// the other nodes alone. A thread of node/model_fetcher.h runs it; it waits, with deadlines.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/part.h"
#include "hub/download.h"
#include "hub/model_cache.h"
#include "hub/settings.h"
#include "node/model_shelf.h"
#include "node/peer_pieces.h"
#include "node/piece_network.h"
#include "node/shared_fetch.h"

namespace lockstep {

// What a node wants of a model.
enum class FetchKind {
  kSmall,   // what text is read and written with
  kWhole,   // all files
  kTable,   // the small files and the tables of the weights' files, to plan with
  kReads,   // besides, what this node's ranks read
  kCopies,  // and what it is to keep of others', so that each piece is on two disks
};
struct FetchWish {
  FetchKind kind = FetchKind::kWhole;
  RankPlan plan{};     // kReads, kCopies: who reads what
  bool drops = false;  // kCopies: what two others keep is given back

  bool operator==(const FetchWish&) const = default;
};

struct FetchedModel {
  std::filesystem::path path;  // what can be loaded
  // Of the hub, or a digest of the files that were copied; empty where the path was here already.
  std::string commit;
  bool has_weights = true;   // false: the small files alone
  bool is_in_parts = false;  // of the weights only parts are here (PartialFiles::kAllowed)
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
  int retries = 7;                                // of the hub, in a row
  std::chrono::seconds patience{120};             // nothing comes from anywhere
  std::chrono::seconds list_wait{60};             // for others that are asking the hub
  std::chrono::seconds reading_wait{3'600};       // for others that read the files of a folder
  std::chrono::seconds lock_wait{3'600};          // for another process that downloads it
  bool keeps_shares = false;                      // of models, rather than all of their files
  std::chrono::milliseconds copies_every{5'000};  // looked at, with `keeps_shares`
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
  ModelFetch(Surroundings surroundings, std::string model, FetchWish wish,
             std::atomic<bool>& cancelled, Events events);

  // What is wanted, or the small files alone where nobody wants more than those. kNotFound: neither
  // here nor at a node nor at the hub; the errors of pull_model(). A model of whose files shares
  // cannot be told apart is fetched whole.
  Result<FetchedModel> run();

  // Without asking anyone: what is here already. Null: nothing, or not all.
  static Result<std::optional<FetchedModel>> find_here(const std::string& model, bool is_small,
                                                       const FetchSettings& settings);
  // The whole model as it is here, be it a copy that is older than its original. kNotFound.
  static Result<std::filesystem::path> whole_here(const std::string& model,
                                                  const FetchSettings& settings);
  // What can be planned with: the whole model, or the folder of its parts. kNotFound.
  static Result<std::filesystem::path> table_here(const std::string& model,
                                                  const FetchSettings& settings);

 private:
  // A fetch is on the board from its first question to its end.
  class OnBoard {
   public:
    OnBoard(const Surroundings& around, const std::shared_ptr<SharedFetch>& fetch);
    ~OnBoard();
    OnBoard(const OnBoard&) = delete;
    OnBoard& operator=(const OnBoard&) = delete;

   private:
    const Surroundings& around_;
    const std::string model_;
  };

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

  // What of the files is wanted, and who may get it from the hub.
  using Keepers = std::function<std::vector<int>(const HubFile&, uint32_t piece)>;
  struct FileParts {
    std::function<bool(const HubFile&, uint32_t piece)> wants;  // empty: all, as whole files
    Keepers keepers;                                            // empty: all that fetch
  };
  Status bring_files(PieceStore& store, std::span<const HubFile> files,
                     const FileParts& parts = {});

  // In model_fetch_parts.cc. By the hash of the file.
  using PieceSet = std::map<std::string, std::vector<bool>>;
  using NodeNeeds = std::map<int, PieceSet>;  // of each machine
  Result<FetchedModel> run_parts();
  Result<std::optional<FetchedModel>> bring_parts(const ModelFiles& files);
  Result<PieceSet> bring_table(PieceStore& store, std::span<const HubFile> weights);
  Result<NodeNeeds> needs_of(const std::filesystem::path& folder,
                             std::span<const HubFile> weights) const;
  Status bring_reads(PieceStore& store, std::span<const HubFile> weights, const PieceSet& table,
                     const NodeNeeds& needs);
  Status seal(PieceStore& store, const HubFile& file, const NodeNeeds& needs);
  bool is_sealer(const HubFile& file, const NodeNeeds& needs) const;
  bool is_all_somewhere(PieceStore& store, const HubFile& file, NodePieces& pieces) const;
  Status bring_copies(PieceStore& store, std::span<const HubFile> weights, const PieceSet& table,
                      const NodeNeeds& needs);
  Status give_back(PieceStore& store, const HubFile& file, const std::vector<bool>& excess,
                   const std::map<NodeId, PieceHoldings>& others);
  Status check_room(PieceStore& store, const std::vector<HubFile>& files,
                    const FileParts& parts) const;

  bool nobody_can_help() const;
  std::unique_ptr<PieceSource> make_source(const Keepers& keepers);
  NodePieces::Options pieces_options() const;
  Status pause();
  void tell(const std::string& note);

  const Surroundings around_;
  const FetchSettings& settings_;
  const std::string model_;
  const FetchWish wish_;
  const bool is_local_;
  std::atomic<bool>& cancelled_;
  const Events events_;
  std::filesystem::path cache_;
  ModelId id_;
  std::shared_ptr<SharedFetch> fetch_;
};

}  // namespace lockstep
