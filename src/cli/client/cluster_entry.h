// How a machine enters a cluster when `lockstep serve` starts: it is in one already, joins one with
// a PIN that the user types or with a token, or founds its own. Blocks, with deadlines, except
// while the user types. Its threads have ended when it returns.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags/secret_flag.h"
#include "cluster/identity.h"
#include "net/frames/frame_connection.h"

// Declared so that includers need not read CLI11.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep {

struct ClusterFlags {
  ClusterFlags() =
      default;  // no aggregate: GCC 12 takes the string of a nested one for uninitialised

  std::vector<std::string> join;
  SecretFlag token;
  std::string name;
  int control_port = 8601;
  bool no_beacon = false;
  double memory_gib = 0;  // 0: most of the free memory
  bool spare = false;
  std::vector<std::string> data_network;
  std::string keep = "all";
};

// The options added; --alone excludes them.
std::vector<CLI::Option*> add_cluster_flags(CLI::App& command, ClusterFlags& flags);

struct ClusterEntry {
  Identity identity;
  std::vector<NetAddress> join;  // of --join
  bool has_founded = false;      // just now
};

Result<ClusterEntry> enter_cluster(const ClusterFlags& flags);

}  // namespace lockstep
