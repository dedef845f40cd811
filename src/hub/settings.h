// HubSettings: which hub, as whom, and where models lie on this machine, in the environment
// variables that Hugging Face's own tools read
// (https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables).
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT, without a slash at the end
  std::string token;                                // HF_TOKEN, or the file HF_TOKEN_PATH
  std::filesystem::path cache;  // HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub
  // LOCKSTEP_MODELS, separated by colons: folders that are only read (a network store). Each holds
  // models as folders org/name, or is another cache.
  std::vector<std::filesystem::path> stores;
  bool is_offline = false;                   // HF_HUB_OFFLINE
  std::chrono::seconds connect_timeout{10};  // HF_HUB_ETAG_TIMEOUT
  std::chrono::seconds silence_timeout{20};  // HF_HUB_DOWNLOAD_TIMEOUT: of a transfer under way
};

// kInvalidArgument for a variable that makes no sense, by its name.
Result<HubSettings> hub_settings_from_environment();

}  // namespace lockstep
