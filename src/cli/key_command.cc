// `lockstep key add`, `list` and `remove`: the API keys of this node. A node that runs reads them
// again by itself.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/output.h"
#include "cluster/identity.h"
#include "cluster/private_file.h"
#include "server/api_keys.h"

namespace lockstep {
namespace {

struct Flags {
  std::string name;
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

Status add_key(const Flags& flags) {
  const std::filesystem::path path = TRY(key_file());
  TRY(make_private_folder(path.parent_path()));
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

Status list_keys(const Flags& flags) {
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

Status remove_key(const Flags& flags) {
  TRY(remove_api_key(TRY(key_file()), flags.name));
  if (flags.json) {
    print_json(JsonObject{{"removed", flags.name}});
  } else {
    print_line(fmt::format("the key {} is no longer taken", flags.name));
  }
  return Ok{};
}

void add(CLI::App& key, Command& chosen, const char* name, const char* text,
         Status (*act)(const Flags&), bool needs_name) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = key.add_subcommand(name, text);
  if (needs_name) command->add_option("NAME", flags->name, "what the key is known as")->required();
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, act);
}

}  // namespace

void add_key_command(CLI::App& app, Command& chosen) {
  CLI::App* key = app.add_subcommand("key", "API keys with which programs may use this node");
  key->require_subcommand(1);
  add(*key, chosen, "add", "make a key and print it, once", add_key, true);
  add(*key, chosen, "list", "names of the keys", list_keys, false);
  add(*key, chosen, "remove", "take a key no longer, from the next request on", remove_key, true);
}

}  // namespace lockstep
