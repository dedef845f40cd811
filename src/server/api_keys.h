// ApiKeys: the keys with which programs may use this node's API. The file in the node's folder
// (0600) holds a name and the SHA-256 of each, so that who reads it cannot use them: a key is 256
// random bits, which nobody can try out. Values; KeyRing is what a server asks, on one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/secrets.h"

namespace lockstep {

inline constexpr const char* kApiKeyFile = "api_keys";
inline constexpr std::string_view kApiKeyPrefix = "lk-";
inline constexpr size_t kApiKeysMax = 1000;
inline constexpr size_t kApiKeyNameBytesMax = 64;

struct ApiKey {
  std::string name;
  Digest hash{};
  int64_t created_s = 0;  // Unix time

  // Tells requests of this key from those of others, and not the key; never 0.
  uint64_t id() const;
};

// None where there is no file. kInvalidArgument where others may read it, kCorrupt where it is no
// list of keys; both say what to do.
Result<std::vector<ApiKey>> read_api_keys(const std::filesystem::path& path);

// Makes a key and gives its text, which is nowhere else from then on. kInvalidArgument for a name
// that is taken or makes no sense.
Result<std::string> add_api_key(const std::filesystem::path& path, const std::string& name,
                                int64_t now_s);
// kNotFound names those that are there.
Status remove_api_key(const std::filesystem::path& path, std::string_view name);

class KeyRing {
 public:
  // An empty path: there are no keys.
  static Result<KeyRing> open(std::filesystem::path path);

  // Reads the file again if it has changed since. One that cannot be read is logged once, and the
  // keys stay what they were.
  void refresh();
  bool is_empty() const { return keys_.empty(); }
  // The key whose text this is; null: none. Takes as long whichever it is.
  const ApiKey* find(std::string_view text) const;

 private:
  // Tells one state of the file from another.
  struct Stamp {
    uint64_t inode = 0;
    int64_t size = -1;  // -1: there is no file
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };

  explicit KeyRing(std::filesystem::path path) : path_(std::move(path)) {}
  Stamp stamp() const;

  std::filesystem::path path_;
  Stamp seen_;
  std::vector<ApiKey> keys_;
};

}  // namespace lockstep
