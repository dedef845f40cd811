// `lockstep plan`: the speed that a model would reach on some machines, and which of them should
// run it, without loading anything.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/files/mapped_file.h"
#include "base/machine/available_memory.h"
#include "cli/bench/shape_bench.h"
#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "cli/text/plan_text.h"
#include "device/open/read_probe.h"
#include "model/load/shape_model.h"
#include "node/cluster/planned_model.h"
#include "planner/cluster_file.h"
#include "planner/facts/measured_machine.h"

namespace lockstep {
namespace {

constexpr size_t kFileBytesMax = size_t{8} << 20;

struct PlanCommandFlags {
  std::string model;
  std::string draft_model;
  std::string cluster;
  std::string check;
  ShapeFlags shape;
  PlanRequest request{.limits = {.context = 0, .streams = 1}};
  std::optional<KvKind> kv;
  bool ngrams_on_disk = false;
  bool fits_constants = false;
  bool json = false;
};

Result<ClusterFacts> this_machine() {
  const auto memory = available_memory_bytes();
  if (!memory) {
    return Error{ErrorCode::kUnsupported,
                 "this system does not say how much memory is free; describe the machine in a file "
                 "for --cluster"};
  }
  show_progress("measuring how fast this machine reads its memory ...");
  const auto speed = measure_this_machine(kReadProbeBytes);
  clear_progress();
  if (!speed.ok()) return speed.error();
  return ClusterFacts{{measured_machine("this machine", *memory, speed.value())},
                      LinkTable(1, {std::nullopt})};
}

Result<std::string> read_file(const std::string& path) {
  return read_small_file(path, kFileBytesMax);
}

Result<ClusterFacts> read_cluster(const PlanCommandFlags& flags) {
  if (flags.cluster.empty()) return this_machine();
  auto cluster = parse_cluster(TRY(read_file(flags.cluster)));
  if (cluster.ok()) return cluster;
  return Error{cluster.error().code, fmt::format("{}: {}", flags.cluster, cluster.error().message)};
}

// A checkpoint as stored, a shape as random weights.
struct Source {
  std::string path;
  std::string format;  // empty: as stored
};

// `is_reformatted`: files too are planned as a shape with the flags' bits or format.
Result<Source> find_source(const PlanCommandFlags& flags, const std::string& name,
                           bool is_reformatted) {
  Source source{.path = TRY(find_model(name))};
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(source.path, ignored);
  if (is_shape_model(source.path) || (is_file && !is_reformatted)) return source;
  ShapeFlags shape = flags.shape;
  shape.shape = source.path;
  source.format = TRY(format_of(shape));
  source.path = shape_model_text({.shape = source.path, .format = source.format});
  return source;
}

Status run_plan(const PlanCommandFlags& flags) {
  PlanSubject subject{
      .model = flags.model, .draft_model = flags.draft_model, .request = flags.request};
  const bool is_reformatted = flags.shape.bits != 0 || !flags.shape.format.empty();
  const Source found = TRY(find_source(flags, flags.model, is_reformatted));
  subject.format = found.format;
  Source draft;
  if (!flags.draft_model.empty()) draft = TRY(find_source(flags, flags.draft_model, false));
  const PlannedModel model = TRY(read_planned_model(
      {.model = found.path, .draft_model = draft.path, .ngrams_on_disk = flags.ngrams_on_disk},
      PartialFiles::kRefused));
  LoadLimits& limits = subject.request.limits;
  if (limits.context == 0) limits.context = TRY(context_for(model.facts.config, 0));
  limits.kv = kv_of(false, flags.kv);
  TRY(model.check_context(limits.context));
  subject.request.draft_model = model.draft_facts();
  const ClusterFacts cluster = TRY(read_cluster(flags));
  const ModelPlan plan = TRY(plan_model(model.facts, cluster, subject.request));
  if (flags.json) {
    print_json(plan_json(subject, cluster, plan));
  } else {
    print_plan(subject, cluster, plan);
  }
  return Ok{};
}

Status run_check(const PlanCommandFlags& flags) {
  auto data = parse_published(TRY(read_file(flags.check)));
  if (!data.ok()) {
    return Error{data.error().code, fmt::format("{}: {}", flags.check, data.error().message)};
  }
  PublishedConstants constants = m3_ultra_constants();
  if (flags.fits_constants) constants = TRY(fit_published(data.value(), constants));
  const CheckResult result = check_published(data.value(), constants);
  if (flags.json) {
    print_json(check_json(result, flags.fits_constants));
  } else {
    print_check(result, flags.fits_constants);
  }
  return Ok{};
}

int run_plan_command(const PlanCommandFlags& flags) {
  const bool is_check = !flags.check.empty();
  if (is_check != flags.model.empty()) {
    return fail({ErrorCode::kInvalidArgument,
                 "give a model to plan or --check FILE, one of both; see `lockstep plan --help`"});
  }
  if (flags.fits_constants && !is_check) {
    return fail({ErrorCode::kInvalidArgument, "--fit goes with --check FILE"});
  }
  return exit_status(is_check ? run_check(flags) : run_plan(flags));
}

std::string profile_help() {
  std::string text = "\nMachines of a cluster FILE by profile:\n";
  for (const ProfileName& profile : machine_profiles()) {
    text += fmt::format("  {:<26}{}\n", profile.name, profile.about);
  }
  text += "Links by profile:\n";
  for (const ProfileName& profile : link_profiles()) {
    text += fmt::format("  {:<26}{}\n", profile.name, profile.about);
  }
  return text +
         "Example: {\"machines\": [{\"profile\": \"mac-studio-m3-ultra\", \"count\": 4}],\n"
         "          \"link\": \"tb5-rdma\"}\n"
         "docs/planner.md says more.";
}

}  // namespace

void add_plan_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PlanCommandFlags>();
  CLI::App* command = app.add_subcommand(
      "plan", "predict speed and memory of a model on a cluster, and say how to place it");
  command->add_option("MODEL", flags->model,
                      "a model folder, a .gguf file, a pulled model (org/name), or a published one "
                      "by its short name (llama-3.3-70b)");
  command->add_option("--cluster", flags->cluster,
                      "machines and links, a JSON file (default: this machine alone)");
  command
      ->add_option(
          "--context", flags->request.limits.context,
          fmt::format("positions per stream (default: the model's, at most {})", kContextDefault))
      ->check(at_least(1));
  command
      ->add_option("--streams", flags->request.limits.streams,
                   "streams at the same time (default 1); with more, their speed together counts")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--draft-right", flags->request.draft_right,
                   fmt::format("the share of the draft layer's guesses that are right, of those "
                               "whose predecessors are (default {})",
                               kDraftRight))
      ->check(CLI::Range(0.0, 1.0));
  add_draft_model_flag(*command, flags->draft_model);
  command
      ->add_option("--prompt", flags->request.prompt_tokens,
                   "length of the prompt whose first token is timed (default 512)")
      ->check(at_least(1));
  add_kv_flag(*command, flags->kv);
  add_ngrams_flag(*command, flags->ngrams_on_disk);
  command->add_option("--bits", flags->shape.bits,
                      "as if the weights had 2, 3, 4, 5, 6, 8, 16 or 32 bits (a published model's "
                      "default: 16)");
  command->add_option("--format", flags->shape.format, "or a stored format, as bench --shape");
  command->add_option("--check", flags->check,
                      "compare predictions with the published speeds in a FILE instead");
  command->add_flag("--fit", flags->fits_constants, "with --check: fit the constants to the FILE");
  command->add_flag("--json", flags->json, "one JSON value");
  command->footer(profile_help());
  command->callback([flags, &chosen] { chosen = [flags] { return run_plan_command(*flags); }; });
}

}  // namespace lockstep
