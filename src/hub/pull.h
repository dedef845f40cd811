// Pulling a model: from its name to a folder that can be loaded. `lockstep pull` is this and what
// it prints.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/choose_files.h"
#include "hub/download.h"
#include "hub/model_id.h"
#include "hub/settings.h"

namespace lockstep {

struct PullOptions {
  HubSettings settings;
  ModelId id;
  FileRules rules;
  int connections = 8;
  int retries = 7;
  uint64_t piece_bytes = kFilePieceBytes;
  bool verifies = false;  // files that are there already are read and checked too
  std::atomic<bool>* cancelled = nullptr;
  std::function<void(const DownloadProgress&)> on_progress;
};

struct PullReport {
  std::filesystem::path path;  // what can be loaded
  std::string commit;
  size_t files = 0;
  uint64_t size_bytes = 0;
  uint64_t received_bytes = 0;  // from the hub in this call
  size_t repaired_files = 0;    // that `verifies` found damaged
};

// Goes on where an earlier call stopped, whatever ended it. Offline it only looks: kNotFound for
// what is not there. kExhausted with the exact numbers where the disk has too little space, before
// anything is fetched; else the errors of fetch_model_files(), choose_files() and download().
Result<PullReport> pull_model(const PullOptions& options);

}  // namespace lockstep
