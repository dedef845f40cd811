// A download: the pieces of some files, over several connections at once, into a PieceStore. A file
// whose pieces have all arrived is checked as a whole (SHA-256, or git's hash of a small file)
// before it gets its final name. If the check fails, pieces that the disk changed and pieces that
// differ from other machines' are fetched again, else all of them, once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "hub/files/model_files.h"
#include "hub/files/piece_source.h"
#include "hub/files/piece_store.h"

namespace lockstep {

struct DownloadProgress {
  uint64_t bytes_there = 0;  // of the wanted pieces
  uint64_t bytes_wanted = 0;
  size_t files_there = 0;
  size_t files = 0;
  std::string file;  // touched last
  bool is_checking = false;
};

struct DownloadOptions {
  int connections = 8;
  // Setting it ends the download; the first error sets it too, for waiting connections.
  std::atomic<bool>* cancelled = nullptr;
  // On the calling thread, every `report_every`, and once at the end.
  std::function<void(const DownloadProgress&)> on_progress;
  std::chrono::milliseconds report_every{200};
  // Limit without data from any source, while sources only say "later".
  std::chrono::seconds patience{120};
  // The wanted pieces; empty: all. A file that is not wanted whole is neither checked nor renamed:
  // see `seal_file` of shared_source.h.
  std::function<bool(const HubFile&, uint32_t piece)> wants;
  // Files stay in pieces even if all pieces are wanted.
  bool stays_in_pieces = false;
};

inline constexpr int kConnectionsMax = 64;

using MakePieceSource = std::function<std::unique_ptr<PieceSource>()>;

// Files with the same content need only be listed once. Returns when all pieces are here. The first
// error ends all connections: kCorrupt for a file that fails its check twice, kExhausted for a full
// disk, and the sources' own.
Status download(PieceStore& store, std::span<const HubFile> files,
                const MakePieceSource& make_source, const DownloadOptions& options);

}  // namespace lockstep
