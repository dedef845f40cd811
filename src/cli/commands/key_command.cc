// `lockstep key add`, `list` and `remove`: the API keys of this node. A running node reads them
// again by itself.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>

#include "access/api_keys.h"
#include "base/files/private_file.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "cluster/identity.h"

namespace lockstep {
namespace {

constexpr size_t kKeyBytesMax = 4096;

struct KeyFlags {
  std::string name;
  bool is_typed = false;  // the key is read from stdin
  bool json = false;
};

Result<std::filesystem::path> key_file() {
  return TRY(Identity::default_folder()) / kApiKeyFile;
}

std::string day_of(int64_t unix_s) {
  const time_t seconds = unix_s;
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Status take_key(const KeyFlags& flags, const std::filesystem::path& path) {
  std::string key = TRY(read_stdin(kKeyBytesMax));
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  TRY(take_api_key(path, flags.name, key, std::time(nullptr)));
  if (flags.json) {
    print_json(JsonObject{{"name", flags.name}});
  } else {
    print_line(fmt::format("the key {} is accepted from now on", flags.name));
  }
  return Ok{};
}

Status add_key(const KeyFlags& flags) {
  const std::filesystem::path path = TRY(key_file());
  TRY(make_private_folder(path.parent_path()));
  if (flags.is_typed) return take_key(flags, path);
  const std::string key = TRY(add_api_key(path, flags.name, std::time(nullptr)));
  if (flags.json) {
    print_json(JsonObject{{"name", flags.name}, {"key", key}});
    return Ok{};
  }
  print_line(key);
  if (stderr_is_terminal()) {
    fmt::print(stderr,
               "It is shown this once. From now on every request to this node needs a "
               "key: Authorization: Bearer KEY\n");
  }
  return Ok{};
}

Status list_keys(const KeyFlags& flags) {
  const std::vector<ApiKey> keys = TRY(read_api_keys(TRY(key_file())));
  if (flags.json) {
    JsonArray list;
    for (const ApiKey& key : keys) {
      list.push_back(JsonObject{{"name", key.name}, {"created", key.created_s}});
    }
    print_json(list);
    return Ok{};
  }
  if (keys.empty()) print_line("there are no API keys: programs of this machine need none");
  size_t width = 0;
  for (const ApiKey& key : keys) width = std::max(width, key.name.size());
  for (const ApiKey& key : keys) {
    print_line(fmt::format("{:<{}}  made {}", key.name, width, day_of(key.created_s)));
  }
  return Ok{};
}

Status remove_key(const KeyFlags& flags) {
  TRY(remove_api_key(TRY(key_file()), flags.name));
  if (flags.json) {
    print_json(JsonObject{{"removed", flags.name}});
  } else {
    print_line(fmt::format("the key {} is no longer accepted", flags.name));
  }
  return Ok{};
}

void add_key_subcommand(CLI::App& key, Command& chosen, const char* name, const char* text,
                        Status (*act)(const KeyFlags&), bool needs_name) {
  auto flags = std::make_shared<KeyFlags>();
  CLI::App* command = key.add_subcommand(name, text);
  if (needs_name) command->add_option("NAME", flags->name, "the key's name")->required();
  if (act == add_key) {
    command->add_flag(
        "--stdin", flags->is_typed,
        "use the key on standard input, such as one that other nodes have, instead of a new one");
  }
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, act);
}

}  // namespace

void add_key_command(CLI::App& app, Command& chosen) {
  CLI::App* key = app.add_subcommand("key", "API keys with which programs may use this node");
  key->require_subcommand(1);
  add_key_subcommand(*key, chosen, "add", "create a key and print it once", add_key, true);
  add_key_subcommand(*key, chosen, "list", "names of the keys", list_keys, false);
  add_key_subcommand(*key, chosen, "remove", "stop accepting a key", remove_key, true);
}

}  // namespace lockstep
