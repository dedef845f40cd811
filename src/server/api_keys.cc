#include "server/api_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/hasher.h"
#include "base/hex.h"
#include "base/log.h"
#include "cluster/private_file.h"
#include "json/json.h"

namespace lockstep {
namespace {

Digest hash_of(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

bool is_key_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '@';
  };
  return !name.empty() && name.size() <= kApiKeyNameBytesMax &&
         std::all_of(name.begin(), name.end(), is_letter);
}

Error no_key_file(const std::filesystem::path& path) {
  return {ErrorCode::kCorrupt,
          path.string() + " is no list of API keys: delete it and make the keys anew"};
}

Result<ApiKey> parse_key(const Json& value, const std::filesystem::path& path) {
  ApiKey key;
  const auto name = get_string(value, "name");
  const auto hash = get_string(value, "sha256");
  const auto created = get_int(value, "created");
  if (!name.ok() || !hash.ok() || !created.ok() || !name.value() || !hash.value()) {
    return no_key_file(path);
  }
  if (!is_key_name(*name.value()) || !from_hex(*hash.value(), key.hash)) return no_key_file(path);
  key.name = *name.value();
  key.created_s = created.value().value_or(0);
  return key;
}

Status write_keys(const std::filesystem::path& path, const std::vector<ApiKey>& keys) {
  JsonArray list;
  for (const ApiKey& key : keys) {
    list.push_back(
        JsonObject{{"name", key.name}, {"sha256", to_hex(key.hash)}, {"created", key.created_s}});
  }
  return replace_private_file(path, dump_json(JsonObject{{"keys", std::move(list)}}) + "\n");
}

}  // namespace

uint64_t ApiKey::id() const {
  uint64_t id = 0;
  std::memcpy(&id, hash.data(), sizeof id);
  return std::max<uint64_t>(id, 1);
}

Result<std::vector<ApiKey>> read_api_keys(const std::filesystem::path& path) {
  const auto text = read_private_file(path);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return std::vector<ApiKey>();
  if (!text.ok()) return text.error();
  const auto json = parse_json(text.value());
  if (!json.ok()) return no_key_file(path);
  const Json* list = find(json.value(), "keys");
  if (list == nullptr || !list->is_array() || list->get_array().size() > kApiKeysMax) {
    return no_key_file(path);
  }
  std::vector<ApiKey> keys;
  for (const Json& value : list->get_array()) keys.push_back(TRY(parse_key(value, path)));
  return keys;
}

Result<std::string> add_api_key(const std::filesystem::path& path, const std::string& name,
                                int64_t now_s) {
  if (!is_key_name(name)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a key's name has 1 to {} letters, digits or any of -_.@",
                             kApiKeyNameBytesMax)};
  }
  std::vector<ApiKey> keys = TRY(read_api_keys(path));
  if (std::any_of(keys.begin(), keys.end(), [&](const ApiKey& key) { return key.name == name; })) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there is a key named {} already: remove it first, or take another "
                             "name",
                             name)};
  }
  if (keys.size() >= kApiKeysMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("there are {} keys, which is the most: remove some", keys.size())};
  }
  std::array<std::byte, 32> secret{};
  TRY(fill_random(secret));
  std::string text = std::string(kApiKeyPrefix) + to_hex(secret);
  keys.push_back({name, hash_of(text), now_s});
  TRY(write_keys(path, keys));
  return text;
}

Status remove_api_key(const std::filesystem::path& path, std::string_view name) {
  std::vector<ApiKey> keys = TRY(read_api_keys(path));
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const ApiKey& key) { return key.name == name; });
  if (found == keys.end()) {
    std::vector<std::string> names;
    for (const ApiKey& key : keys) names.push_back(key.name);
    return Error{ErrorCode::kNotFound, keys.empty()
                                           ? "there are no API keys"
                                           : fmt::format("there is no key named {}; there are {}",
                                                         name, fmt::join(names, ", "))};
  }
  keys.erase(found);
  return write_keys(path, keys);
}

Result<KeyRing> KeyRing::open(std::filesystem::path path) {
  KeyRing ring(std::move(path));
  if (ring.path_.empty()) return ring;
  ring.seen_ = ring.stamp();
  ring.keys_ = TRY(read_api_keys(ring.path_));
  return ring;
}

// Asked for each request; files are replaced whole, so the inode changes too.
KeyRing::Stamp KeyRing::stamp() const {
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) != 0) return {};
#ifdef __APPLE__
  const timespec changed = facts.st_ctimespec;
#else
  const timespec changed = facts.st_ctim;
#endif
  return {static_cast<uint64_t>(facts.st_ino), static_cast<int64_t>(facts.st_size),
          int64_t{changed.tv_sec} * 1'000'000'000 + changed.tv_nsec};
}

void KeyRing::refresh() {
  if (path_.empty()) return;
  const Stamp now = stamp();
  if (now == seen_) return;
  seen_ = now;
  auto keys = read_api_keys(path_);
  if (!keys.ok()) {
    log_error("the API keys stay as they were: {}", keys.error().message);
    return;
  }
  keys_ = std::move(keys.value());
  log_info("{} API {} from now on", keys_.size(), keys_.size() == 1 ? "key" : "keys");
}

const ApiKey* KeyRing::find(std::string_view text) const {
  const Digest hash = hash_of(text);
  const ApiKey* found = nullptr;
  for (const ApiKey& key : keys_) {
    if (is_same_secret(hash, key.hash)) found = &key;
  }
  return found;
}

}  // namespace lockstep
