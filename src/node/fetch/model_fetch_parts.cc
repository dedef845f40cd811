// Fetches only the parts of a model that a node needs: its weights' tables, what the node's ranks
// read, and copies of what others read, so each piece is on two disks (model_fetch.h).
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "base/bytes_text.h"
#include "base/files/mapped_file.h"
#include "base/log.h"
#include "hub/files/piece_plan.h"
#include "hub/model_download.h"
#include "model/load/open_model.h"
#include "model/load/rank_reads.h"
#include "node/fetch/model_fetch.h"
#include "weights/safetensors/early_tensors.h"
#include "weights/safetensors/safetensors.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using PieceSet = std::map<std::string, std::vector<bool>>;

bool is_in(const PieceSet& set, const HubFile& file, uint32_t piece) {
  const auto found = set.find(file.hash);
  return found != set.end() && piece < found->second.size() && found->second[piece];
}

void add_range(std::vector<bool>& pieces, const PieceCut& cut, ByteRange range) {
  if (range.size() == 0) return;
  const uint64_t last = std::min((range.end - 1) / cut.piece_bytes, uint64_t{cut.count()} - 1);
  for (uint64_t piece = range.begin / cut.piece_bytes; piece <= last; ++piece) pieces[piece] = true;
}

// Each content once; empty if a weights' file has another format.
std::vector<HubFile> tabled_weights(const ModelFiles& files) {
  std::vector<HubFile> weights;
  for (const HubFile& file : contents_of(files)) {
    if (!is_weights_file(file)) continue;
    if (!file.name.ends_with(".safetensors")) return {};
    weights.push_back(file);
  }
  return weights;
}

// The pieces that hold the table of a file, as far as known here; then those of the tensors that
// are read early.
Status add_table(PieceStore& store, const HubFile& file, bool has_table,
                 std::vector<bool>& pieces) {
  const PieceCut cut = store.cut(file);
  const fs::path path =
      store.is_whole(file) ? store.blob(file) : PieceStore::partial_path(store.blob(file));
  const MappedFile mapped = TRY(MappedFile::open(path));
  const auto bytes = mapped.bytes();
  if (!has_table) {
    const size_t head_bytes = std::min<size_t>(bytes.size(), 8);  // the table's length
    TRY(mapped.check_here(bytes.first(head_bytes)));
    add_range(pieces, cut, {0, safetensors_head_bytes(bytes)});
    return Ok{};
  }
  TRY(mapped.check_here(bytes.first(safetensors_head_bytes(bytes))));
  const SafetensorsHeader header = TRY(read_safetensors_header(bytes));
  for (const TensorView& tensor : header.tensors) {
    const auto place = mapped.place_of(tensor.bytes);
    if (place && is_read_early(tensor)) add_range(pieces, cut, *place);
  }
  return Ok{};
}

// Bytes that the holder must still fetch.
uint64_t new_bytes(const PieceCut& cut, const std::vector<std::vector<int>>& keepers,
                   const PieceHolder& holder) {
  uint64_t bytes = 0;
  for (uint32_t piece = 0; piece < cut.count(); ++piece) {
    const auto& those = keepers[piece];
    const bool has = piece < holder.has.size() && holder.has[piece];
    const bool keeps = std::find(those.begin(), those.end(), holder.machine) != those.end();
    if (keeps && !has) bytes += cut.range(piece).size();
  }
  return bytes;
}

}  // namespace

Result<FetchedModel> ModelFetch::run_parts() {
  const auto parts = around_.local_models.parts(model_);
  // A check that each piece has two copies is not a fetch.
  const bool only_looks = wish_.kind == FetchKind::kCopies && parts;
  std::optional<OnBoard> on_board;
  if (!only_looks) on_board.emplace(around_, fetch_);
  ModelFiles files = parts ? parts->files : TRY(agree()).files;
  if (auto brought = TRY(bring_parts(files))) return std::move(*brought);
  // Nodes that read it keep it whole, and model_copies.h makes the second copy.
  if (wish_.kind == FetchKind::kCopies) {
    return FetchedModel{.path = {}, .commit = files.commit, .has_weights = false};
  }
  if (!on_board) on_board.emplace(around_, fetch_);
  return bring(std::move(files));
}

// Nullopt if the model cannot be split into shares.
Result<std::optional<FetchedModel>> ModelFetch::bring_parts(const ModelFiles& files) {
  const ModelPaths paths(cache_, id_);
  const ModelFiles small = small_files(files);
  const std::vector<HubFile> weights = tabled_weights(files);
  if (small.files.empty() || weights.empty()) return std::optional<FetchedModel>();
  std::error_code error;
  fs::create_directories(paths.blobs(), error);
  if (!error) fs::create_directories(paths.folder / "lockstep", error);
  if (error) return write_error(paths.folder, error.value());
  const ModelLock lock = TRY(take_lock());
  const auto parts = around_.local_models.begin_parts(model_, files);
  PieceStore& store = *parts->store;
  TRY(write_file_atomically(paths.list(files.commit), dump_model_files(files)));
  fetch_->use_files(files, parts->store);
  NodePieces(pieces_options(), fetch_).refresh();  // so that all know which node fetches what
  TRY(check_room(store, contents_of(small), {}));
  TRY(bring_files(store, contents_of(small)));
  TRY(publish(paths, small, id_.revision_or_default()));
  if (events_.on_small) events_.on_small({paths.snapshot(files.commit), files.commit, false});
  const PieceSet table = TRY(bring_table(store, weights));
  TRY(publish_parts(paths, files));
  const auto needs = needs_of(parts->folder, weights);
  if (!needs.ok()) {
    log_warn("node: {} is kept whole, because its shares cannot be determined: {}", model_,
             needs.error().message);
    fs::remove_all(parts->folder, error);
    return std::optional<FetchedModel>();
  }
  if (wish_.kind == FetchKind::kReads) TRY(bring_reads(store, weights, table, needs.value()));
  if (wish_.kind == FetchKind::kCopies) TRY(bring_copies(store, weights, table, needs.value()));
  return std::optional(FetchedModel{parts->folder, files.commit, true, true});
}

// The first piece of a file says how long its table is, and the table where the tensors are.
Result<ModelFetch::PieceSet> ModelFetch::bring_table(PieceStore& store,
                                                     std::span<const HubFile> weights) {
  PieceSet table;
  for (const HubFile& file : weights) {
    table[file.hash].resize(store.cut(file).count());
    if (!table[file.hash].empty()) table[file.hash][0] = true;
  }
  for (const bool has_table : {false, true}) {
    const FileParts parts{
        [&](const HubFile& file, uint32_t piece) { return is_in(table, file, piece); }, {}};
    TRY(check_room(store, {weights.begin(), weights.end()}, parts));
    TRY(bring_files(store, weights, parts));
    for (const HubFile& file : weights) TRY(add_table(store, file, has_table, table[file.hash]));
    if (has_table) TRY(bring_files(store, weights, parts));
  }
  return table;
}

// The bytes that the ranks on each machine read. Without ranks: whether that can be determined.
Result<ModelFetch::NodeNeeds> ModelFetch::needs_of(const fs::path& folder,
                                                   std::span<const HubFile> weights) const {
  const OpenedModel opened = TRY(open_model(folder.string(), PartialFiles::kTables));
  std::vector<double> shares;
  for (const RankPart& rank : wish_.plan.ranks) shares.push_back(static_cast<double>(rank.share));
  const bool is_trial = shares.empty();
  if (is_trial) shares.push_back(1);
  const auto reads = TRY(rank_reads(opened, shares, static_cast<int>(wish_.plan.stages)));
  NodeNeeds needs;
  if (is_trial) return needs;
  for (size_t rank = 0; rank < reads.size(); ++rank) {
    PieceSet& own = needs[machine_of(wish_.plan.ranks[rank].node)];
    for (const HubFile& file : weights) {
      own[file.hash].resize(PieceCut{file.size, settings_.piece_bytes}.count());
    }
    for (const FileReads& of_file : reads[rank]) {
      const auto file = std::find_if(weights.begin(), weights.end(), [&](const HubFile& each) {
        return each.name == of_file.file.lexically_relative(folder).string();
      });
      if (file == weights.end()) {
        return Error{ErrorCode::kInternal,
                     fmt::format("{} is not a file of the model", of_file.file.string())};
      }
      const PieceCut cut{file->size, settings_.piece_bytes};
      for (const ByteRange& range : of_file.ranges) add_range(own[file->hash], cut, range);
    }
  }
  return needs;
}

// Pieces that no rank reads are still assigned to machines, since the hash covers the whole file.
Status ModelFetch::bring_reads(PieceStore& store, std::span<const HubFile> weights,
                               const PieceSet& table, const NodeNeeds& needs) {
  std::vector<int> machines;
  for (const auto& [machine, own] : needs) machines.push_back(machine);
  const auto needers = [&](const HubFile& file, uint32_t piece) {
    std::vector<int> found;
    for (const auto& [machine, own] : needs) {
      if (is_in(own, file, piece)) found.push_back(machine);
    }
    if (found.empty()) found.push_back(fetcher_of(file.hash, piece, machines));
    return found;
  };
  const int self = machine_of(around_.self);
  FileParts parts;
  parts.wants = [&](const HubFile& file, uint32_t piece) {
    const auto found = needers(file, piece);
    return is_in(table, file, piece) || std::find(found.begin(), found.end(), self) != found.end();
  };
  parts.keepers = [&](const HubFile& file, uint32_t piece) {
    std::vector<int> fetchers = fetch_->fetchers();
    const auto found = needers(file, piece);
    std::erase_if(fetchers, [&](int machine) {
      return std::find(found.begin(), found.end(), machine) == found.end();
    });
    return fetchers;
  };
  TRY(check_room(store, {weights.begin(), weights.end()}, parts));
  TRY(bring_files(store, weights, parts));
  bool is_any_wrong = false;
  for (const HubFile& file : weights) {
    TRY(seal(store, file, needs));
    is_any_wrong = TRY(store.forget_unsealed(file)) || is_any_wrong;
  }
  return is_any_wrong ? bring_files(store, weights, parts) : Status(Ok{});
}

// One machine checks the hash over all pieces; the others use its digests of the pieces.
Status ModelFetch::seal(PieceStore& store, const HubFile& file, const NodeNeeds& needs) {
  NodePieces pieces(pieces_options(), fetch_);
  const auto start = Clock::now();
  while (!store.is_whole(file) && store.sealed(file).empty()) {
    if (const auto digests = pieces.seal(file); !digests.empty()) return store.seal(file, digests);
    pieces.alive();  // refreshes what is known of the others
    if (is_sealer(file, needs) && is_all_somewhere(store, file, pieces)) {
      tell(fmt::format("checking {}", file.name));
      return seal_file(store, file, pieces);
    }
    if (Clock::now() - start > settings_.reading_wait) {
      return Error{ErrorCode::kTimeout,
                   fmt::format("no node has checked {} for {} s because pieces of it are missing",
                               file.name, settings_.reading_wait.count())};
    }
    tell(fmt::format("another node checks {}", file.name));
    TRY(pause());
  }
  return Ok{};
}

// One of the machines that read the model and are fetching it now.
bool ModelFetch::is_sealer(const HubFile& file, const NodeNeeds& needs) const {
  const int self = machine_of(around_.self);
  std::vector<int> candidates{self};
  for (const auto& [node, status] : fetch_->others()) {
    const bool is_here = status.wants && status.commit == fetch_->commit();
    if (is_here && needs.contains(machine_of(node))) candidates.push_back(machine_of(node));
  }
  return fetcher_of(file.hash, UINT32_MAX, candidates) == self;
}

bool ModelFetch::is_all_somewhere(PieceStore& store, const HubFile& file,
                                  NodePieces& pieces) const {
  std::vector<bool> there = store.pieces_here(file);
  for (const auto& [node, holdings] : pieces.holdings()) {
    const auto found = holdings.files.find(file.hash);
    if (found == holdings.files.end() || found->second.size() != there.size()) continue;
    for (size_t piece = 0; piece < there.size(); ++piece) {
      if (found->second[piece]) there[piece] = true;
    }
  }
  return std::find(there.begin(), there.end(), false) == there.end();
}

// Files not checked by any node yet wait for the next round.
Status ModelFetch::bring_copies(PieceStore& store, std::span<const HubFile> weights,
                                const PieceSet& table, const NodeNeeds& needs) {
  NodePieces pieces(pieces_options(), fetch_);
  const auto others = pieces.holdings();
  const int self = machine_of(around_.self);
  const auto needs_in = [&](int machine, const HubFile& file) {
    const auto found = needs.find(machine);
    return found == needs.end() ? std::vector<bool>() : found->second.at(file.hash);
  };
  std::map<int, uint64_t> room{{self, around_.local_models.room_for(model_)}};
  for (const auto& [node, holdings] : others) room[machine_of(node)] = holdings.room_bytes;
  PieceSet wanted, excess;
  bool is_any_missing = false;
  uint64_t lonely = 0;  // bytes for whose second copy no node has room
  for (const HubFile& file : weights) {
    if (store.is_whole(file)) continue;
    if (store.sealed(file).empty()) {
      const auto digests = pieces.seal(file);
      if (digests.empty()) continue;
      TRY(store.seal(file, digests));
    }
    const std::vector<bool> here = store.pieces_here(file);
    std::vector<PieceHolder> holders{{self, here, needs_in(self, file), room[self], true}};
    for (const auto& [node, holdings] : others) {
      const auto has = holdings.files.find(file.hash);
      const int machine = machine_of(node);
      holders.push_back({machine, has == holdings.files.end() ? std::vector<bool>() : has->second,
                         needs_in(machine, file), room[machine], holdings.takes_copies});
    }
    const auto keepers = copies_of(file.hash, store.cut(file), holders);
    for (const PieceHolder& holder : holders) {
      room[holder.machine] -=
          std::min(room[holder.machine], new_bytes(store.cut(file), keepers, holder));
    }
    wanted[file.hash].resize(here.size());
    excess[file.hash].resize(here.size());
    for (uint32_t piece = 0; piece < here.size(); ++piece) {
      const auto& those = keepers[piece];
      const bool keeps = std::find(those.begin(), those.end(), self) != those.end();
      wanted[file.hash][piece] = keeps;
      excess[file.hash][piece] = !keeps && here[piece] && !is_in(table, file, piece);
      is_any_missing = is_any_missing || (keeps && !here[piece]);
      if (those.size() < 2) lonely += store.cut(file).range(piece).size();
    }
  }
  if (is_any_missing) {
    const OnBoard on_board(around_, fetch_);
    const FileParts parts{
        [&](const HubFile& file, uint32_t piece) { return is_in(wanted, file, piece); }, {}};
    TRY(check_room(store, {weights.begin(), weights.end()}, parts));
    return bring_files(store, weights, parts);
  }
  for (const HubFile& file : weights) {
    if (wish_.drops && excess.contains(file.hash)) {
      TRY(give_back(store, file, excess[file.hash], others));
    }
  }
  if (lonely == 0 || others.empty()) return Ok{};
  return Error{
      ErrorCode::kExhausted,
      fmt::format(
          "{} of it are on only one disk, and no other node that keeps shares has room for them",
          bytes_text(lonely))};
}

// Drops only pieces that two other nodes report to have.
Status ModelFetch::give_back(PieceStore& store, const HubFile& file,
                             const std::vector<bool>& excess,
                             const std::map<NodeId, PieceHoldings>& others) {
  constexpr int kCopies = 2;
  std::vector<uint32_t> dropped;
  for (uint32_t piece = 0; piece < excess.size(); ++piece) {
    const auto copies = std::count_if(others.begin(), others.end(), [&](const auto& other) {
      return is_in(other.second.files, file, piece);
    });
    if (excess[piece] && copies >= kCopies) dropped.push_back(piece);
  }
  const uint64_t freed = TRY(store.drop(file, dropped));
  if (freed > 0) {
    log_info("node: {} of {} is left to other nodes, which keep two copies of it",
             bytes_text(freed), file.name);
  }
  return Ok{};
}

}  // namespace lockstep
