#include "cli/flags/secret_flag.h"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/files/private_file.h"

namespace lockstep {

Result<std::string> read_secret(const SecretFlag& flag, const char* credential) {
  if (!flag.value.empty()) return flag.value;
  if (!flag.file.empty()) return read_secret_file(flag.file);
  const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
  if (folder == nullptr || *folder == 0) return std::string();
  auto secret = read_secret_file(std::filesystem::path(folder) / credential);
  if (!secret.ok() && secret.error().code == ErrorCode::kNotFound) return std::string();
  return secret;
}

void add_core_dump_flag(CLI::App& command, bool& are_allowed) {
  command
      .add_flag("--core-dumps", are_allowed,
                "allow core dumps and debuggers, which see keys and conversations (default: off)")
      ->envname("LOCKSTEP_CORE_DUMPS");
}

}  // namespace lockstep
