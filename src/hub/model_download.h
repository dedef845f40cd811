// What every download of a model's files into a cache does before its first byte: `lockstep pull`
// (pull.h) and the nodes of a cluster (node/model_fetcher.h). Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/model_cache.h"
#include "hub/model_files.h"
#include "hub/piece_store.h"

namespace lockstep {

// Each content once, the small files first, so that what is wrong with a model is known early.
std::vector<HubFile> contents_of(const ModelFiles& files);

bool is_weights_file(const HubFile& file);
// What a node needs that reads and writes text and computes nothing. No files where a model has all
// of that in its weights' file.
ModelFiles small_files(const ModelFiles& files);

// What an earlier call with other rules brought stays part of the model.
void add_earlier_files(const ModelPaths& paths, ModelFiles& files);

struct SpaceNeed {
  std::string_view model;  // for the sentence
  std::string_view way_out = "set HF_HUB_CACHE to a folder on another disk";
  std::filesystem::path folder;  // where the blobs lie; it exists
  // Which pieces are wanted; empty: all.
  std::function<bool(const HubFile&, uint32_t piece)> wants{};
};

// kExhausted with the exact numbers where what is missing does not fit.
Status check_space(const SpaceNeed& need, const PieceStore& store,
                   const std::vector<HubFile>& contents);

}  // namespace lockstep
