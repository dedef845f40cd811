// The flags for running a model on this machine. They mean the same in every command.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "node/group/group_supervisor.h"

// Declared so that includers need not read CLI11.
namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace lockstep {

// For integers. CLI11's own validators report floating-point limits.
CLI::Validator at_least(int least);

struct GroupFlags {
  std::string model;
  int ranks = 0;            // 0: one per share, or 1
  std::string shares;       // "3:1"
  std::string parallel;     // "tensor" or "pipeline"; empty: as `stages` says
  int stages = 0;           // 0: one, or with "pipeline" as many as ranks
  std::string draft_model;  // empty: none
  GroupSpec spec{};         // without what the flags above decide: see group_options()
  int queue_max = kQueueDefault;
  bool verbose = false;  // lists every tensor's error with --bits
  std::optional<double> cache_disk_gib;
};

void add_link_flags(CLI::App& command, LinkOptions& link);
// --kv; not set if it is not given.
void add_kv_flag(CLI::App& command, std::optional<KvKind>& kv);
void add_ngrams_flag(CLI::App& command, bool& ngrams_on_disk);
// All flags except the model, --bits and --verbose.
void add_group_flags(CLI::App& command, GroupFlags& flags);
// Limits on the requests of a served model.
void add_load_limits(CLI::App& command, GroupFlags& flags);
// --bits and --verbose.
void add_bits_flag(CLI::App& command, GroupFlags& flags);
// --cache-disk; `otherwise` describes the default.
void add_cache_flag(CLI::App& command, GroupFlags& flags, const char* otherwise);
// --draft, GenerateRequest::draft_tokens, --no-draft-layer and --draft-model.
void add_draft_flags(CLI::App& command, int& draft_tokens, GroupFlags& flags);
void add_draft_model_flag(CLI::App& command, std::string& draft_model);
// The cache of --cache-disk; without it nothing is kept.
Result<DiskCache> disk_cache_of(const GroupFlags& flags);
Result<GroupSupervisorOptions> group_options(const GroupFlags& flags);
// Resolves MODEL: a path, or a hub's model that is on this disk (hub/model_cache.h).
Result<std::string> find_model(const std::string& model);
// Starts the group and shows meanwhile, on a terminal, how far its weights are read.
Result<std::unique_ptr<GroupSupervisor>> start_group(const GroupSupervisorOptions& options);
// kExhausted, naming the flag to raise, for a prompt longer than the context.
Status check_context(size_t prompt_tokens, const ModelStatus& status);
// Prints on stderr what --bits lost.
void print_quantisation(const GroupFlags& flags, const ModelStatus& status);

}  // namespace lockstep
