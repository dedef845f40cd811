#include "access/api_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/byte_text.h"
#include "base/crypto/hasher.h"
#include "base/files/private_file.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/threads/guarded.h"
#include "json/json.h"

namespace lockstep {
namespace {

constexpr size_t kApiKeySecretBytes = 32;

Digest hash_of(std::string_view text) {
  return sha256(bytes_of(text));
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
          path.string() + " is not a list of API keys: delete it and create the keys again"};
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

Error name_is_taken(const std::string& name) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("there is already a key named {}: remove it first, or choose another name",
                      name)};
}

const ApiKey* named(const std::vector<ApiKey>& keys, std::string_view name) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const ApiKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

// The existing keys, before one of this name is added.
Result<std::vector<ApiKey>> keys_before(const std::filesystem::path& path,
                                        const std::string& name) {
  if (is_key_name(name)) return read_api_keys(path);
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("a key's name has 1 to {} letters, digits or any of -_.@", kApiKeyNameBytesMax)};
}

Status write_with(const std::filesystem::path& path, std::vector<ApiKey> keys, ApiKey added) {
  if (keys.size() >= kApiKeysMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("there are {} keys, the maximum: remove some", keys.size())};
  }
  keys.push_back(std::move(added));
  return write_keys(path, keys);
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
  std::string text = std::string(kApiKeyPrefix) + TRY(random_hex(kApiKeySecretBytes));
  std::vector<ApiKey> keys = TRY(keys_before(path, name));
  if (named(keys, name) != nullptr) return name_is_taken(name);
  TRY(write_with(path, std::move(keys), {name, hash_of(text), now_s}));
  return text;
}

Status take_api_key(const std::filesystem::path& path, const std::string& name,
                    std::string_view text, int64_t now_s) {
  const bool has_prefix = text.starts_with(kApiKeyPrefix);
  if (!has_prefix || !is_hex(text.substr(kApiKeyPrefix.size()), 2 * kApiKeySecretBytes)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a key is {} and {} hex digits in lower case, as `lockstep key add` "
                             "makes them",
                             kApiKeyPrefix, 2 * kApiKeySecretBytes)};
  }
  std::vector<ApiKey> keys = TRY(keys_before(path, name));
  if (const ApiKey* there = named(keys, name)) {
    return is_same_secret(there->hash, hash_of(text)) ? Status(Ok{}) : name_is_taken(name);
  }
  return write_with(path, std::move(keys), {name, hash_of(text), now_s});
}

Status remove_api_key(const std::filesystem::path& path, std::string_view name) {
  std::vector<ApiKey> keys = TRY(read_api_keys(path));
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const ApiKey& key) { return key.name == name; });
  if (found == keys.end()) {
    std::vector<std::string> names;
    for (const ApiKey& key : keys) names.push_back(key.name);
    return Error{ErrorCode::kNotFound,
                 keys.empty() ? "there are no API keys"
                              : fmt::format("there is no key named {}; the keys are {}", name,
                                            fmt::join(names, ", "))};
  }
  keys.erase(found);
  return write_keys(path, keys);
}

// Shared by the thread and the ring. The thread is not joined: a disk that hangs would block the
// ring's destructor.
struct KeyRing::Watch {
  // Identifies one state of the file; files are replaced whole, so the inode changes too.
  struct Stamp {
    uint64_t inode = 0;
    int64_t size = -1;  // -1: no file
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };

  explicit Watch(std::filesystem::path file) : path(std::move(file)), seen(stamp()) {}

  Stamp stamp() const;
  void read_again();
  void run();

  const std::filesystem::path path;
  Stamp seen;  // the thread's own, once it runs
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  std::shared_ptr<const Keys> keys;
};

KeyRing::Watch::Stamp KeyRing::Watch::stamp() const {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return {};
#ifdef __APPLE__
  const timespec time = facts.st_ctimespec;
#else
  const timespec time = facts.st_ctim;
#endif
  return {static_cast<uint64_t>(facts.st_ino), static_cast<int64_t>(facts.st_size),
          int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec};
}

void KeyRing::Watch::read_again() {
  const Stamp now = stamp();
  if (now == seen) return;
  auto read = read_api_keys(path);
  seen = now;  // not before: if memory was lacking, the next look reads the file
  if (!read.ok()) {
    log_error("the API keys stay as they were: {}", read.error().message);
    return;
  }
  auto next = std::make_shared<const Keys>(std::move(read.value()));
  log_info("{} API {} from now on", next->size(), next->size() == 1 ? "key" : "keys");
  const std::lock_guard lock(mutex);
  keys = std::move(next);
}

void KeyRing::Watch::run() {
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, kPeriod, [this] { return is_over; })) {
    lock.unlock();
    const Status read = guarded([this] { read_again(); });
    if (!read.ok()) log_error("the API keys stay as they were: {}", read.error().message);
    lock.lock();
  }
}

Result<KeyRing> KeyRing::open(const std::filesystem::path& path) {
  if (path.empty()) return KeyRing(nullptr);
  auto watch = std::make_shared<Watch>(path);
  watch->keys = std::make_shared<const Keys>(TRY(read_api_keys(path)));
  std::thread([watch] { watch->run(); }).detach();
  return KeyRing(std::move(watch));
}

KeyRing::~KeyRing() {
  if (watch_ == nullptr) return;
  const std::lock_guard lock(watch_->mutex);
  watch_->is_over = true;
  watch_->changed.notify_all();
}

std::shared_ptr<const KeyRing::Keys> KeyRing::keys() const {
  static const auto kNone = std::make_shared<const Keys>();
  if (watch_ == nullptr) return kNone;
  const std::lock_guard lock(watch_->mutex);
  return watch_->keys;
}

const ApiKey* find_key(const std::vector<ApiKey>& keys, std::string_view text) {
  const Digest hash = hash_of(text);
  const ApiKey* found = nullptr;
  for (const ApiKey& key : keys) {
    if (is_same_secret(hash, key.hash)) found = &key;
  }
  return found;
}

}  // namespace lockstep
