// Pulling a model: from its name to a loadable folder. `lockstep pull` is this plus its output.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/files/choose_files.h"
#include "hub/files/model_id.h"
#include "hub/files/settings.h"
#include "hub/http/download.h"

namespace lockstep {

struct PullOptions {
  HubSettings settings;
  ModelId id;
  FileRules rules;
  int connections = 8;
  int retries = 7;
  uint64_t piece_bytes = kFilePieceBytes;
  bool verifies = false;  // also reads and checks files already here
  std::atomic<bool>* cancelled = nullptr;
  std::function<void(const DownloadProgress&)> on_progress;
};

struct PullReport {
  std::filesystem::path path;  // can be loaded
  std::string commit;
  size_t files = 0;
  uint64_t size_bytes = 0;
  uint64_t received_bytes = 0;  // from the hub, in this call
  size_t repaired_files = 0;    // that `verifies` found damaged
};

// Resumes where an earlier call stopped, whatever ended it. Offline it only looks: kNotFound for
// what is missing. kExhausted with the exact numbers if the disk has too little space, before
// anything is fetched; else the errors of fetch_model_files(), choose_files() and download().
Result<PullReport> pull_model(const PullOptions& options);

}  // namespace lockstep
