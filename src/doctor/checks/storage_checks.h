// Disks: room for models, and this node's own folder with its keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "doctor/facts/finding.h"

namespace lockstep {

struct FileRights {
  std::filesystem::path path;
  bool is_folder = false;
  unsigned mode = 0;  // 0600; for files the last nine bits
  bool is_ours = true;
};

struct StorageFacts {
  std::string settings_error;  // of the hub's settings; empty: they are valid
  std::filesystem::path models;
  std::optional<uint64_t> models_free_bytes;
  bool can_write_models = false;
  std::filesystem::path home;  // empty: neither $LOCKSTEP_HOME nor $HOME is set
  std::optional<uint64_t> home_free_bytes;
  std::vector<FileRights> private_files;  // the existing ones
};

StorageFacts collect_storage();
// The existing ones of a node's folder and the files with secrets in it.
std::vector<FileRights> list_private_files(const std::filesystem::path& home);
Findings judge_storage(const StorageFacts& facts);

}  // namespace lockstep
