// The flags that say how a model is run on this machine. They mean the same in every command.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "node/local_group.h"

// So that who includes this need not read CLI11.
namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace lockstep {

// For whole numbers. CLI11's own validators speak of floating-point limits.
CLI::Validator at_least(int least);

// How the ranks are joined, in the words of the command line.
struct LinkFlags {
  LinkFlags() = default;  // no aggregate: GCC 12 takes the string of a nested one for uninitialised

  std::string kind = "shm";
  std::string topology = "mesh";
  int rails = 1;
  bool encrypt = false;
  int delay_us = 0;
  double gbit_s = 0;
};

struct GroupFlags {
  std::string model;
  int ranks = 0;         // 0: as many as shares, or 1
  std::string shares;    // "3:1"
  std::string parallel;  // "tensor" or "pipeline"; empty: as `stages` says
  int stages = 0;        // 0: one, or with "pipeline" as many as ranks
  LinkFlags link;
  std::string wire = "f32";
  int threads = 0;
  bool pin = false;
  int context = 0;
  int streams = 0;  // sequences that run together; 0: 8
  int queue = -1;   // requests that may wait beyond those; -1: 64
  bool exact = false;
  int bits = 0;
  bool verbose = false;  // every tensor's error of `bits`
  std::string device = "cpu";
  std::optional<double> cache_disk_gib;
};

void add_link_flags(CLI::App& command, LinkFlags& flags);
Result<LinkOptions> link_options(const LinkFlags& flags);
// Everything but the model itself, --bits and --verbose.
void add_group_flags(CLI::App& command, GroupFlags& flags);
// How many requests a served model takes.
void add_load_limits(CLI::App& command, GroupFlags& flags);
// Both of these.
void add_bits_flag(CLI::App& command, GroupFlags& flags);
// --cache-disk; `otherwise` says what it is by default.
void add_cache_flag(CLI::App& command, GroupFlags& flags, const char* otherwise);
// --draft, GenerateRequest::draft_tokens.
void add_draft_flag(CLI::App& command, int& draft_tokens);
// What --cache-disk says, or nothing is kept.
Result<DiskCache> disk_cache_of(const GroupFlags& flags);
// `text` is "3:1" or "2:1:1"; empty for equal shares of `ranks`.
Result<std::vector<double>> parse_shares(const std::string& text, int ranks);
// Of `ranks` ranks, as --parallel and --stages have it.
Result<int> stage_count(const GroupFlags& flags, int ranks);
Result<LocalGroupOptions> group_options(const GroupFlags& flags);
// What MODEL stands for: a path, or a model of a hub that is on this disk (hub/model_cache.h).
Result<std::string> find_model(const std::string& model);
// Starts the group, with a line of progress meanwhile.
Result<std::unique_ptr<LocalGroup>> start_group(const LocalGroupOptions& options);
// kExhausted, with the flag that makes room, for a prompt that is longer than the context.
Status check_context(size_t prompt_tokens, const ModelStatus& status);
// On stderr, what --bits lost.
void print_quantisation(const GroupFlags& flags, const ModelStatus& status);

}  // namespace lockstep
