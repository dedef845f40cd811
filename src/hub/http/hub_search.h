// Searches the configured hub for models: one request, without retries, that is neither redirected
// to another host nor waited for beyond its deadlines. The answer is of GET /api/models
// (https://huggingface.co/docs/hub/api). One thread uses a call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/files/settings.h"

namespace lockstep {

inline constexpr size_t kSearchBytesMax = 200;            // of the words
inline constexpr int kSearchModelsMax = 100;              // in one answer
inline constexpr size_t kSearchAnswerBytesMax = 1 << 20;  // of the hub
inline constexpr std::chrono::seconds kSearchTime{8};

struct FoundModel {
  std::string id;                    // "org/name"
  std::optional<int64_t> downloads;  // of the last 30 days
  std::optional<int64_t> likes;
  std::string updated;  // "2026-11-01T08:00:00.000Z"; empty: unknown
  bool is_gated = false;
};

// The most downloaded first. kInvalidArgument for words that cannot be searched for, kTimeout,
// kPeerLost, kCorrupt, kCancelled; kUnsupported with HF_HUB_OFFLINE.
Result<std::vector<FoundModel>> search_hub(const HubSettings& settings, const std::string& words,
                                           int models_max, const std::atomic<bool>* cancelled);

}  // namespace lockstep
