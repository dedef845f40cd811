#include "hub/shared_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "hub/files/piece_plan.h"

namespace lockstep {
namespace {

// From the first machine that has the piece, with the digest that it sends and the right one; false
// if there is none.
bool fetch_from_any(PeerPieces& peers, const std::vector<int>& machines, const HubFile& file,
                    uint32_t piece, std::span<std::byte> bytes, Digest& digest,
                    const auto& is_right) {
  return std::any_of(machines.begin(), machines.end(), [&](int machine) {
    const auto has_come = peers.fetch(machine, file, piece, bytes, digest);
    // Skips a machine that could not be asked: the others may have it.
    return has_come.ok() && has_come.value() && sha256(bytes) == digest && is_right(digest);
  });
}

}  // namespace

SharedSource::SharedSource(SharedSourceOptions options, std::unique_ptr<PeerPieces> peers,
                           std::unique_ptr<PieceSource> hub)
    : options_(std::move(options)), peers_(std::move(peers)), hub_(std::move(hub)) {}

int SharedSource::fetcher(const HubFile& file, uint32_t piece,
                          const std::vector<int>& alive) const {
  std::vector<int> candidates = options_.keepers(file, piece);
  std::erase_if(candidates, [&](int machine) {
    return machine != options_.self &&
           std::find(alive.begin(), alive.end(), machine) == alive.end();
  });
  return fetcher_of(file.hash, piece, candidates);
}

bool SharedSource::is_own(const HubFile& file, uint32_t piece) const {
  return fetcher(file, piece, peers_->alive()) == options_.self;
}

Result<bool> SharedSource::fetch(const PieceRequest& request, std::span<std::byte> bytes) {
  const std::vector<int> alive = peers_->alive();
  Digest digest{};
  const auto is_right = [&](const Digest& got) {
    if (request.expected) return got == *request.expected;
    // The other machines may have the same wrong bytes.
    return !request.is_from_hub_alone || (request.rejected && got != *request.rejected);
  };
  const bool is_only_hubs = request.is_from_hub_alone && !request.rejected;
  if (!is_only_hubs &&
      fetch_from_any(*peers_, alive, request.file, request.piece, bytes, digest, is_right)) {
    return true;
  }
  if (!hub_) return false;
  if (request.is_from_hub_alone) return hub_->fetch(request, bytes);
  if (fetcher(request.file, request.piece, alive) != options_.self) return false;
  return fetch_from_hub(request, bytes);
}

Result<bool> SharedSource::fetch_from_hub(const PieceRequest& request, std::span<std::byte> bytes) {
  if (!peers_->claim(request.file, request.piece)) return false;
  auto has_come = hub_->fetch(request, bytes);
  peers_->release(request.file, request.piece, has_come.ok() && has_come.value());
  return has_come;
}

std::vector<uint32_t> SharedSource::suspects(const HubFile& file, std::span<const Digest> digests) {
  std::vector<uint32_t> suspects;
  const std::vector<int> alive = peers_->alive();
  for (uint32_t piece = 0; piece < digests.size(); ++piece) {
    const bool differs = std::any_of(alive.begin(), alive.end(), [&](int machine) {
      const auto other = peers_->digest(machine, file, piece);
      return other.ok() && other.value() && *other.value() != digests[piece];
    });
    if (differs) suspects.push_back(piece);
  }
  return suspects;
}

Status seal_file(PieceStore& store, const HubFile& file, PeerPieces& peers) {
  const PieceCut cut = store.cut(file);
  Hasher hasher = hasher_for(file);
  std::vector<Digest> digests(cut.count());
  std::vector<std::byte> bytes(cut.piece_bytes);
  for (uint32_t piece = 0; piece < cut.count(); ++piece) {
    const auto part = std::span(bytes).first(cut.range(piece).size());
    if (TRY(store.read(file, piece, part))) {
      digests[piece] = sha256(part);
    } else if (!fetch_from_any(peers, peers.alive(), file, piece, part, digests[piece],
                               [](const Digest&) { return true; })) {
      return Error{
          ErrorCode::kPeerLost,
          fmt::format("none of the machines that answer has piece {} of {}", piece, file.name)};
    }
    hasher.add(part);
  }
  if (hasher.finish_hex() == file.hash) return store.seal(file, digests);
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} on the machines is not the file that the hub lists", file.name)};
}

}  // namespace lockstep
