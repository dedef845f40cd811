// HubSettings: the hub, the token, and where models are stored on this machine, from the
// environment variables of Hugging Face's own tools
// (https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables).
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // HF_ENDPOINT, without a trailing slash
  std::string token;                                // HF_TOKEN, or the file HF_TOKEN_PATH
  std::filesystem::path cache;  // HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub
  // LOCKSTEP_MODELS, separated by colons: read-only folders (a network store). Each holds models as
  // folders org/name, or is another cache.
  std::vector<std::filesystem::path> stores;
  bool is_offline = false;                   // HF_HUB_OFFLINE
  std::chrono::seconds connect_timeout{10};  // HF_HUB_ETAG_TIMEOUT
  std::chrono::seconds silence_timeout{20};  // HF_HUB_DOWNLOAD_TIMEOUT: within a transfer
};

// kInvalidArgument names an invalid variable.
Result<HubSettings> hub_settings_from_environment();

}  // namespace lockstep
