// Preparation of every download of a model's files into a cache: `lockstep pull` (pull.h) and the
// nodes of a cluster (node/fetch/model_fetcher.h). Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/files/model_files.h"
#include "hub/files/piece_store.h"
#include "hub/model_cache.h"

namespace lockstep {

// Each content once, small files first, so that problems with a model are found early.
std::vector<HubFile> contents_of(const ModelFiles& files);

bool is_weights_file(const HubFile& file);
// Files for a node that reads and writes text and computes nothing. Empty if a model has them all
// in its weights' file.
ModelFiles small_files(const ModelFiles& files);

// Adds the files that an earlier call with other rules downloaded: they stay part of the model.
void add_earlier_files(const ModelPaths& paths, ModelFiles& files);

struct SpaceNeed {
  std::string_view model;  // for the message
  std::string_view way_out = "set HF_HUB_CACHE to a folder on another disk";
  std::filesystem::path folder;  // of the blobs; it exists
  // The wanted pieces; empty: all.
  std::function<bool(const HubFile&, uint32_t piece)> wants{};
};

// kExhausted with the exact numbers if the missing bytes do not fit.
Status check_space(const SpaceNeed& need, const PieceStore& store,
                   const std::vector<HubFile>& contents);

}  // namespace lockstep
