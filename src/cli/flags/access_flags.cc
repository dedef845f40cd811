#include "cli/flags/access_flags.h"

#include <CLI/CLI.hpp>

#include "cluster/identity.h"

namespace lockstep {

void add_access_flags(CLI::App& command, AccessOptions& access) {
  command.add_flag("--open", access.is_open,
                   "without API keys, also answer other machines: everyone who can reach the port");
  command
      .add_option("--host-name", access.host_names,
                  "a name besides this machine's own by which clients without an API key may call "
                  "this server (may be repeated)")
      ->allow_extra_args(false);
  command
      .add_option("--allow-origin", access.origins,
                  "web pages that may use the API, such as https://example.org; * for all (may be "
                  "repeated; default none)")
      ->allow_extra_args(false);
  command
      .add_option("--requests-per-minute", access.limits.requests_per_minute,
                  "of each API key, or address without keys (default 0: no limit)")
      ->check(CLI::Range(0, 1'000'000));
  command
      .add_option("--requests-at-once", access.limits.requests_at_once,
                  "of each API key, or address without keys (default 0: no limit)")
      ->check(CLI::Range(0, 1'000'000));
}

Result<AccessOptions> access_with_keys(const AccessOptions& given) {
  AccessOptions access = given;
  access.keys = TRY(Identity::default_folder()) / kApiKeyFile;
  return access;
}

}  // namespace lockstep
