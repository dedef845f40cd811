// Disks: room for models, and this node's own folder with its keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"

namespace lockstep {

struct FileRights {
  std::filesystem::path path;
  bool is_folder = false;
  unsigned mode = 0;  // 0600; of files the last nine bits
  bool is_ours = true;
};

struct StorageFacts {
  std::string settings_error;  // of the hub's settings; empty: they are good
  std::filesystem::path models;
  std::optional<uint64_t> models_free_bytes;
  bool can_write_models = false;
  std::filesystem::path home;  // empty: neither $LOCKSTEP_HOME nor $HOME is set
  std::optional<uint64_t> home_free_bytes;
  std::vector<FileRights> private_files;  // that are there
};

StorageFacts collect_storage();
// Of a node's folder, and of the files with secrets in it, those that are there.
std::vector<FileRights> list_private_files(const std::filesystem::path& home);
Findings judge_storage(const StorageFacts& facts);

}  // namespace lockstep
