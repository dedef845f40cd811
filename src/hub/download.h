// A download: the pieces of some files, by several connections at once, into a PieceStore. A file
// whose pieces are all there is checked as a whole (SHA-256, or git's hash of a small file) before
// it gets its name. One that is not what it should be is looked into: pieces that the disk changed
// and pieces that other machines have otherwise are fetched again, else all of them, once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "hub/model_files.h"
#include "hub/piece_source.h"
#include "hub/piece_store.h"

namespace lockstep {

struct DownloadProgress {
  uint64_t bytes_there = 0;  // of what is wanted
  uint64_t bytes_wanted = 0;
  size_t files_there = 0;
  size_t files = 0;
  std::string file;  // the one touched last
  bool is_checking = false;
};

struct DownloadOptions {
  int connections = 8;
  // Whoever sets it ends the download; it is set too at the first error, for connections that wait.
  std::atomic<bool>* cancelled = nullptr;
  // On the calling thread, each `report_every`, and once at the end.
  std::function<void(const DownloadProgress&)> on_progress;
  std::chrono::milliseconds report_every{200};
  // Nothing has come from anywhere for so long, where sources only say "later".
  std::chrono::seconds patience{120};
  // Which pieces are wanted; empty: all. A file that is not wanted whole is neither checked nor
  // renamed: that is for `seal_file` of shared_source.h.
  std::function<bool(const HubFile&, uint32_t piece)> wants;
  // Files stay in pieces also where all pieces are wanted.
  bool stays_in_pieces = false;
};

inline constexpr int kConnectionsMax = 64;

using MakePieceSource = std::function<std::unique_ptr<PieceSource>()>;

// Files that have the same content need be named once only. Returns when all is there. The first
// error ends all connections: kCorrupt for a file that is wrong twice, kExhausted for a full disk,
// and the sources' own.
Status download(PieceStore& store, std::span<const HubFile> files,
                const MakePieceSource& make_source, const DownloadOptions& options);

}  // namespace lockstep
