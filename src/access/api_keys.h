// ApiKeys: the keys with which programs may use this node's API. The file in the node's folder
// (0600) holds a name and the SHA-256 of each, so that reading it does not reveal keys: 256 random
// bits cannot be guessed. Values; servers use KeyRing, on any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto/secrets.h"
#include "base/result.h"

namespace lockstep {

inline constexpr const char* kApiKeyFile = "api_keys";
inline constexpr std::string_view kApiKeyPrefix = "lk-";
inline constexpr size_t kApiKeysMax = 1000;
inline constexpr size_t kApiKeyNameBytesMax = 64;

struct ApiKey {
  std::string name;
  Digest hash{};
  int64_t created_s = 0;  // Unix time

  // Identifies the requests of this key without revealing it; never 0.
  uint64_t id() const;
};

// Empty if there is no file. kInvalidArgument if others may read it, kCorrupt if it is not a list
// of keys; both say what to do.
Result<std::vector<ApiKey>> read_api_keys(const std::filesystem::path& path);

// Makes a key and returns its text, which is stored nowhere. kInvalidArgument for a name that is
// taken or invalid.
Result<std::string> add_api_key(const std::filesystem::path& path, const std::string& name,
                                int64_t now_s);
// Adds a key made elsewhere, "lk-" and 64 hex digits. Does nothing if the name already has this
// key; an error if it has another.
Status take_api_key(const std::filesystem::path& path, const std::string& name,
                    std::string_view text, int64_t now_s);
// kNotFound lists the existing names.
Status remove_api_key(const std::filesystem::path& path, std::string_view name);

// The keys of a file, which a dedicated thread reads again when it changes: a disk that hangs
// blocks no other thread. Any thread.
class KeyRing {
 public:
  using Keys = std::vector<ApiKey>;

  // How often the file is checked for changes.
  static constexpr std::chrono::milliseconds kPeriod{250};

  // Reads the file at once; an empty path: no keys.
  static Result<KeyRing> open(const std::filesystem::path& path);
  ~KeyRing();
  KeyRing(KeyRing&&) = default;
  KeyRing& operator=(KeyRing&&) = delete;

  // The current keys. If the file cannot be read this is logged once, and the old keys stay.
  std::shared_ptr<const Keys> keys() const;

 private:
  struct Watch;

  explicit KeyRing(std::shared_ptr<Watch> watch) : watch_(std::move(watch)) {}

  std::shared_ptr<Watch> watch_;  // shared with the thread, which may outlive this; null: no file
};

// The key with this text; null: none. Takes the same time whichever key matches.
const ApiKey* find_key(const std::vector<ApiKey>& keys, std::string_view text);

}  // namespace lockstep
