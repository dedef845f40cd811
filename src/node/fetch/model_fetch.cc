#include "node/fetch/model_fetch.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"
#include "hub/files/choose_files.h"
#include "hub/http/hub_client.h"
#include "hub/model_download.h"
#include "model/load/shape_model.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAskAgain{100};
constexpr std::chrono::seconds kHopelessAfter{3};
constexpr std::chrono::seconds kUnheardWait{4};

// The path of a model in a cache; kNotFound.
Result<fs::path> path_in(const LocalCopy& place, const FetchSettings& settings) {
  HubSettings hub = settings.hub;
  if (place.cache != hub.cache) hub.stores.clear();
  hub.cache = place.cache;
  return fs::path(TRY(resolve_model(place.id.text(), hub)));
}

// The hub as a source; errors are noted, since the fetch may continue without it.
class ClusterHub final : public PieceSource {
 public:
  ClusterHub(const HubOptions& options, const ModelId& id, std::shared_ptr<SharedFetch> fetch)
      : hub_(options, id, fetch->commit()), fetch_(std::move(fetch)) {}

  Result<bool> fetch(const PieceRequest& request, std::span<std::byte> bytes) override {
    if (!fetch_->uses_hub()) return false;
    auto has_come = hub_.fetch(request, bytes);
    if (has_come.ok() || has_come.error().code == ErrorCode::kCancelled) return has_come;
    fetch_->note_hub_failure(has_come.error());
    if (fetch_->holders().empty()) return has_come;
    if (request.is_from_hub_alone && !request.rejected) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("{} is damaged on the nodes that have it, and cannot be fetched again: {}",
                      request.file.name, has_come.error().message)};
    }
    log_warn("node: {}; {} is fetched only from the other nodes for now", has_come.error().message,
             fetch_->model());
    return false;
  }
  bool has_origin() const override { return fetch_->uses_hub(); }

 private:
  HubSource hub_;
  const std::shared_ptr<SharedFetch> fetch_;
};

}  // namespace

ModelFetch::OnBoard::OnBoard(const Surroundings& around, const std::shared_ptr<SharedFetch>& fetch)
    : around_(around), model_(fetch->model()) {
  around_.board.add(fetch);
}

ModelFetch::OnBoard::~OnBoard() {
  around_.local_models.forget(model_);
  around_.board.remove(model_);
}

ModelFetch::ModelFetch(Surroundings surroundings, std::string model, FetchWish wish,
                       std::atomic<bool>& cancelled, Events events)
    : around_(std::move(surroundings)),
      settings_(around_.settings),
      model_(std::move(model)),
      wish_(std::move(wish)),
      is_local_(is_local_path(model_)),
      cancelled_(cancelled),
      events_(std::move(events)) {
  LocalCopy place = place_of(model_, settings_.hub, settings_.home);
  cache_ = std::move(place.cache);
  id_ = std::move(place.id);
  fetch_ = std::make_shared<SharedFetch>(around_.self, model_, settings_.times);
}

Result<std::optional<FetchedModel>> ModelFetch::find_here(const std::string& model, bool is_small,
                                                          const FetchSettings& settings) {
  std::error_code error;
  if (is_shape_model(model)) return std::optional(FetchedModel{model, ""});
  if (is_local_path(model)) {
    const fs::path path = path_below(settings.root, model);
    if (fs::exists(path, error)) return std::optional(FetchedModel{path, ""});
  } else {
    TRY(parse_model_id(model));
  }
  const LocalCopy place = place_of(model, settings.hub, settings.home);
  const ModelPaths paths(place.cache, place.id);
  const auto commit = commit_on_disk(paths, place.id.revision_or_default());
  const auto path = path_in(place, settings);
  // A copy may be older than its original: run() asks.
  if (path.ok() && !is_local_path(model)) {
    return std::optional(FetchedModel{path.value(), commit.value_or("")});
  }
  if (!path.ok() && path.error().code != ErrorCode::kNotFound) return path.error();
  if (!is_small || !commit) return std::optional<FetchedModel>();
  const auto listed = read_list(paths, *commit);
  const auto chosen = listed.ok() ? choose_files(listed.value(), place.id, {}) : listed;
  if (!chosen.ok()) return std::optional<FetchedModel>();
  const ModelFiles small = small_files(chosen.value());
  if (small.files.empty() || !missing_files(paths, small).empty()) {
    return std::optional<FetchedModel>();
  }
  return std::optional(FetchedModel{paths.snapshot(*commit), *commit, false});
}

Result<FetchedModel> ModelFetch::run() {
  const bool is_small = events_.wants_whole && !events_.wants_whole();
  if (auto here = TRY(find_here(model_, is_small, settings_))) return std::move(*here);
  const LocalCopy place{cache_, id_};
  const auto copy =
      is_local_ ? path_in(place, settings_) : Result<fs::path>(Error{ErrorCode::kNotFound, ""});
  if (!is_local_ && !settings_.hub.is_offline) fetch_->allow_hub();
  if (wish_.kind > FetchKind::kWhole && !copy.ok()) return run_parts();
  if (wish_.kind == FetchKind::kCopies) return FetchedModel{.path = copy.value(), .commit = {}};
  const OnBoard on_board(around_, fetch_);
  auto agreed = agree();
  const bool is_owner_away = agreed.ok() ? agreed.value().origin != Origin::kOwner
                                         : agreed.error().code == ErrorCode::kNotFound;
  if (is_owner_away && copy.ok()) {
    log_info("node: the node with {} is not connected; the existing copy is used", model_);
    return FetchedModel{copy.value(), ""};
  }
  return bring(TRY(std::move(agreed)).files);
}

Result<fs::path> ModelFetch::whole_here(const std::string& model, const FetchSettings& settings) {
  const auto found = TRY(find_here(model, false, settings));
  if (found) return found->path;
  if (is_local_path(model)) return path_in(place_of(model, settings.hub, settings.home), settings);
  return Error{ErrorCode::kNotFound, "its files are not on this node yet"};
}

Result<fs::path> ModelFetch::table_here(const std::string& model, const FetchSettings& settings) {
  auto whole = whole_here(model, settings);
  if (whole.ok() || whole.error().code != ErrorCode::kNotFound) return whole;
  const LocalCopy place = place_of(model, settings.hub, settings.home);
  return find_parts(ModelPaths(place.cache, place.id), place.id.revision_or_default());
}

void ModelFetch::tell(const std::string& note) {
  if (events_.on_progress) events_.on_progress({.note = note, .file = {}});
}

Status ModelFetch::pause() {
  // relaxed: only a flag, it publishes nothing.
  if (cancelled_.load(std::memory_order_relaxed)) {
    return Error{ErrorCode::kCancelled, "the download was stopped"};
  }
  std::this_thread::sleep_for(kAskAgain);
  return Ok{};
}

NodePieces::Options ModelFetch::pieces_options() const {
  return {.loop = around_.loop,
          .network = around_.network,
          .streams = around_.streams,
          .piece_bytes = static_cast<uint32_t>(settings_.piece_bytes),
          .times = settings_.stream_times,
          .cancelled = &cancelled_};
}

// Which files the model has, the same on all nodes: decided by nodes that have it, then by nodes
// that fetch it already, then by the hub.
Result<ModelFetch::Agreed> ModelFetch::agree() {
  NodePieces pieces(pieces_options(), fetch_);
  const auto start = Clock::now();
  bool has_asked_hub = false;
  for (;;) {
    const bool is_one_reading = pieces.refresh();
    if (is_one_reading && Clock::now() - start < settings_.reading_wait) {
      tell("another node reads its files");
      TRY(pause());
      continue;
    }
    for (const Origin origin : {Origin::kOwner, Origin::kCopy, Origin::kUnfinished}) {
      auto files = TRY(list_of_others(pieces, origin));
      if (files) return Agreed{std::move(*files), origin};
    }
    // A node that could not be asked may have it: it is asked again for a moment.
    const bool is_one_missing =
        fetch_->is_one_unheard() || (fetch_->uses_hub() && around_.network.is_one_expected());
    if (is_one_missing && Clock::now() - start < kUnheardWait) {
      tell("waiting for the other nodes");
      TRY(pause());
      continue;
    }
    if (!std::exchange(has_asked_hub, true)) {
      auto files = TRY(list_of_hub());
      if (files) return Agreed{std::move(*files), Origin::kHub};
    }
    const auto others = fetch_->others();
    const bool is_one_asking = std::any_of(others.begin(), others.end(), [](const auto& other) {
      return other.second.wants && other.second.uses_hub;
    });
    if (!is_one_asking || Clock::now() - start > settings_.list_wait) return nobody_has_it();
    tell("another node asks the hub");
    TRY(pause());
  }
}

Error ModelFetch::nobody_has_it() const {
  if (const auto error = fetch_->hub_error()) return *error;
  if (is_local_) {
    return {ErrorCode::kNotFound,
            fmt::format("{} is neither on this node nor on another connected node of the cluster",
                        model_)};
  }
  return {
      ErrorCode::kNotFound,
      fmt::format("none of the connected nodes has {}, and HF_HUB_OFFLINE forbids asking the hub",
                  model_)};
}

Result<std::optional<ModelFiles>> ModelFetch::list_of_others(NodePieces& pieces, Origin origin) {
  std::optional<ModelFiles> found;
  NodeId found_at;
  for (const auto& [node, status] : fetch_->others()) {
    const Origin has = !status.is_whole ? Origin::kUnfinished
                       : status.is_copy ? Origin::kCopy
                                        : Origin::kOwner;
    if (status.commit.empty() || has != origin) continue;
    if (found && found->commit == status.commit) continue;
    if (found && is_local_ && origin == Origin::kOwner) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} is not the same on the nodes '{}' and '{}'; make them equal, or "
                      "load one of them under another path",
                      model_, around_.network.name_of(found_at), around_.network.name_of(node))};
    }
    if (found) continue;  // the first node's list counts, in node order: all choose alike
    auto listed = pieces.list(node);
    if (!listed.ok() || listed.value().commit != status.commit) continue;
    auto chosen = choose_files(listed.value(), id_, {});
    if (!chosen.ok()) continue;  // it has other files
    found = std::move(chosen.value());
    found_at = node;
  }
  if (found) {
    log_info("node: {} is fetched as node {} has it, revision {:.8}", model_,
             around_.network.name_of(found_at), found->commit);
  }
  return found;
}

Result<std::optional<ModelFiles>> ModelFetch::list_of_hub() {
  if (!fetch_->uses_hub()) return std::optional<ModelFiles>();
  tell("asking the hub");
  const HubOptions options{
      .settings = settings_.hub, .retries = settings_.retries, .cancelled = &cancelled_};
  auto listed = fetch_model_files(options, id_);
  if (listed.ok()) {
    log_info("node: {} is fetched as the hub lists it, revision {:.8}", model_,
             listed.value().commit);
    return std::optional(TRY(choose_files(listed.value(), id_, {})));
  }
  if (listed.error().code == ErrorCode::kCancelled) return listed.error();
  fetch_->note_hub_failure(listed.error());
  return std::optional<ModelFiles>();
}

Result<ModelLock> ModelFetch::take_lock() {
  const auto start = Clock::now();
  for (;;) {
    auto lock = ModelLock::take(cache_, id_);
    if (lock.ok() || lock.error().code != ErrorCode::kExhausted) return lock;
    if (Clock::now() - start > settings_.lock_wait) return lock;
    tell("another process downloads it");
    TRY(pause());
  }
}

Result<FetchedModel> ModelFetch::bring(ModelFiles files) {
  const ModelPaths paths(cache_, id_);
  std::error_code error;
  fs::create_directories(paths.blobs(), error);
  if (!error) fs::create_directories(paths.folder / "lockstep", error);
  if (error) return write_error(paths.folder, error.value());
  const ModelLock lock = TRY(take_lock());
  add_earlier_files(paths, files);
  const auto store = std::make_shared<PieceStore>(paths.blobs(), settings_.piece_bytes);
  const ModelFiles small = small_files(files);
  const bool is_only_small = !small.files.empty() && events_.wants_whole && !events_.wants_whole();
  TRY(check_room(*store, contents_of(is_only_small ? small : files), {}));
  TRY(write_file_atomically(paths.list(files.commit), dump_model_files(files)));
  fetch_->use_files(files, store);
  for (const HubFile& file : contents_of(files)) whole_bytes_ += file.size;
  NodePieces(pieces_options(), fetch_).refresh();  // so that all know which node fetches what
  if (!small.files.empty()) {
    TRY(bring_files(*store, contents_of(small)));
    TRY(publish(paths, small, id_.revision_or_default()));
    const FetchedModel brought{paths.snapshot(files.commit), files.commit, false};
    if (events_.on_small) events_.on_small(brought);
    if (events_.wants_whole && !events_.wants_whole()) return brought;
  }
  TRY(bring_files(*store, contents_of(files)));
  TRY(publish(paths, files, id_.revision_or_default()));
  return FetchedModel{TRY(path_in({cache_, id_}, settings_)), files.commit};
}

Status ModelFetch::check_room(PieceStore& store, const std::vector<HubFile>& files,
                              const FileParts& parts) const {
  return check_space({.model = model_,
                      .way_out = is_local_ ? "set LOCKSTEP_HOME to a folder on another disk"
                                           : "set HF_HUB_CACHE to a folder on another disk",
                      .folder = ModelPaths(cache_, id_).blobs(),
                      .wants = parts.wants},
                     store, files);
}

std::unique_ptr<PieceSource> ModelFetch::make_source(const Keepers& keepers) {
  std::unique_ptr<PieceSource> hub;
  if (!is_local_ && !settings_.hub.is_offline) {
    const HubOptions options{.settings = settings_.hub,
                             .retries = settings_.retries,
                             .cancelled = &cancelled_,
                             .received = &fetch_->received};
    hub = std::make_unique<ClusterHub>(options, id_, fetch_);
  }
  const SharedSourceOptions options{
      .self = machine_of(around_.self),
      .keepers = keepers ? keepers : [fetch = fetch_](const HubFile&, uint32_t) {
        return fetch->fetchers();
      }};
  return std::make_unique<SharedSource>(
      options, std::make_unique<NodePieces>(pieces_options(), fetch_), std::move(hub));
}

Status ModelFetch::bring_files(PieceStore& store, std::span<const HubFile> files,
                               const FileParts& parts) {
  DownloadOptions options{.connections = settings_.connections,
                          .cancelled = &cancelled_,
                          .patience = settings_.patience,
                          .wants = parts.wants,
                          .stays_in_pieces = static_cast<bool>(parts.wants)};
  auto moved_at = Clock::now();
  uint64_t moved_to = 0;
  std::optional<Error> given_up;
  options.on_progress = [&](const DownloadProgress& progress) {
    if (std::exchange(moved_to, progress.bytes_there) != progress.bytes_there) {
      moved_at = Clock::now();
    }
    if (!given_up && Clock::now() - moved_at > kHopelessAfter && nobody_can_help()) {
      given_up = fetch_->hub_error();
      // relaxed: only a flag, it publishes nothing.
      cancelled_.store(true, std::memory_order_relaxed);
    }
    if (!events_.on_progress) return;
    events_.on_progress({.note = std::string(progress.is_checking ? kCheckingNote : ""),
                         .bytes_there = progress.bytes_there,
                         .bytes_wanted = progress.bytes_wanted,
                         .file = progress.file,
                         .whole_bytes = whole_bytes_,
                         .from_hub_bytes = fetch_->received.load(std::memory_order_relaxed),
                         .from_nodes_bytes = fetch_->from_nodes.load(std::memory_order_relaxed)});
  };
  Status status = download(
      store, files, [&] { return make_source(parts.keepers); }, options);
  if (status.ok()) return status;
  if (given_up) return *given_up;
  if (status.error().code != ErrorCode::kTimeout) return status;
  if (const auto error = fetch_->hub_error()) return *error;  // why nothing arrived
  return status;
}

// The hub cannot be reached from here, and no other node has the model or gets it from the hub.
bool ModelFetch::nobody_can_help() const {
  if (!fetch_->hub_error() || fetch_->uses_hub()) return false;
  const auto others = fetch_->others();
  return std::none_of(others.begin(), others.end(), [](const auto& other) {
    return other.second.is_whole || (other.second.wants && other.second.uses_hub);
  });
}

}  // namespace lockstep
