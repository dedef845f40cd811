// ModelFetch: fetches one model to this machine, from the hub and the other nodes together, or from
// the other nodes alone. Runs on a thread of node/fetch/model_fetcher.h; it waits, with deadlines.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/part.h"
#include "hub/files/settings.h"
#include "hub/http/download.h"
#include "hub/model_cache.h"
#include "node/fetch/local_models.h"
#include "node/fetch/node_pieces.h"
#include "node/fetch/piece_network.h"
#include "node/fetch/shared_fetch.h"

namespace lockstep {

// How much of a model a node wants.
enum class FetchKind {
  kSmall,   // for reading and writing text: configuration, tokenizer, template
  kWhole,   // all files
  kTable,   // the small files and the tables of the weights' files, for planning
  kReads,   // also what this node's ranks read
  kCopies,  // also what it keeps for others, so that each piece is on two disks
};
struct FetchWish {
  FetchKind kind = FetchKind::kWhole;
  RankPlan plan{};     // kReads, kCopies: which rank reads what
  bool drops = false;  // kCopies: pieces that two others keep are given back

  bool operator==(const FetchWish&) const = default;
};

struct FetchedModel {
  std::filesystem::path path;  // can be loaded
  // The hub's, or a digest of the copied files; empty if the path was here already.
  std::string commit;
  bool has_weights = true;   // false: only the small files
  bool is_in_parts = false;  // only parts of the weights are here (PartialFiles::kAllowed)
};

// The note of a fetch whose files are being checked.
inline constexpr std::string_view kCheckingNote = "checking";

struct FetchProgress {
  std::string note;  // the beginning of a sentence about a wait; empty: data is arriving
  uint64_t bytes_there = 0;
  uint64_t bytes_wanted = 0;  // 0: not known yet
  std::string file;           // touched last
  uint64_t whole_bytes = 0;   // of all files of the model; 0: not known yet
  // Received in this fetch, also of pieces that are not complete yet.
  uint64_t from_hub_bytes = 0;
  uint64_t from_nodes_bytes = 0;
};

struct FetchSettings {
  HubSettings hub;
  std::filesystem::path home;        // $LOCKSTEP_HOME
  std::filesystem::path root = "/";  // for tests that simulate several machines on one disk
  uint64_t piece_bytes = kFilePieceBytes;
  int connections = 4;
  int retries = 7;                                // of the hub, in a row
  std::chrono::seconds patience{120};             // without data from any source
  std::chrono::seconds list_wait{60};             // for others asking the hub
  std::chrono::seconds reading_wait{3'600};       // for others reading a folder's files
  std::chrono::seconds lock_wait{3'600};          // for another process downloading it
  bool keeps_shares = false;                      // parts of models instead of whole files
  std::chrono::milliseconds copies_every{5'000};  // check interval, with `keeps_shares`
  SharedFetch::Times times{};
  PieceStreamTimes stream_times{};
};

class ModelFetch {
 public:
  struct Surroundings {
    EventLoop& loop;
    PieceNetwork& network;
    PieceStreamPool& streams;
    LocalModels& local_models;
    FetchBoard& board;
    NodeId self;
    const FetchSettings& settings;
  };
  // Called on the thread of run().
  struct Events {
    std::function<void(const FetchProgress&)> on_progress;
    // The small files are here: enough for a node without weights.
    std::function<void(const FetchedModel&)> on_small;
    std::function<bool()> wants_whole;
  };

  // `cancelled` is also set here when a download fails.
  ModelFetch(Surroundings surroundings, std::string model, FetchWish wish,
             std::atomic<bool>& cancelled, Events events);

  // The files that the requests want, or only the small ones if none wants more. kNotFound: neither
  // here nor on a node nor at the hub; the errors of pull_model(). A model whose files cannot be
  // split into shares is fetched whole.
  Result<FetchedModel> run();

  // Without asking others: what is here already. Null: nothing, or not all.
  static Result<std::optional<FetchedModel>> find_here(const std::string& model, bool is_small,
                                                       const FetchSettings& settings);
  // The whole model as it is here, even a copy older than its original. kNotFound.
  static Result<std::filesystem::path> whole_here(const std::string& model,
                                                  const FetchSettings& settings);
  // The files that planning can use: the whole model, or the folder of its parts. kNotFound.
  static Result<std::filesystem::path> table_here(const std::string& model,
                                                  const FetchSettings& settings);

 private:
  // Keeps a fetch on the board while this lives.
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

  // Whose list of files is trusted, best first.
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

  // Which parts of the files are wanted, and which machines may get them from the hub.
  using Keepers = std::function<std::vector<int>(const HubFile&, uint32_t piece)>;
  struct FileParts {
    std::function<bool(const HubFile&, uint32_t piece)> wants;  // empty: all, as whole files
    Keepers keepers;                                            // empty: all machines that fetch
  };
  Status bring_files(PieceStore& store, std::span<const HubFile> files,
                     const FileParts& parts = {});

  // In model_fetch_parts.cc. By the file's hash.
  using PieceSet = std::map<std::string, std::vector<bool>>;
  using NodeNeeds = std::map<int, PieceSet>;  // by machine
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
  uint64_t whole_bytes_ = 0;  // 0: not known yet
};

}  // namespace lockstep
