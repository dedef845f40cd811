// Secrets passed to a command, and who else can see them. All users of the machine see flags (ps),
// and readers of a service manager's file see its variables; neither shows a file of the owner's,
// or a credential of systemd. Used at start, by one thread.
#pragma once

#include <string>

#include "base/result.h"

// Declared so that includers need not read CLI11.
namespace CLI {
class App;
}  // namespace CLI

namespace lockstep {

struct SecretFlag {
  std::string value;  // the secret
  std::string file;   // its file
};

// The value, else the file's content, else the systemd credential named `credential`
// (LoadCredential=), else nothing. kInvalidArgument if other users may read a file.
Result<std::string> read_secret(const SecretFlag& flag, const char* credential);

// --core-dumps of the serving commands (base/process/core_dumps.h).
void add_core_dump_flag(CLI::App& command, bool& are_allowed);

}  // namespace lockstep
