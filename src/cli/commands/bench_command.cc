// `lockstep bench MODEL`, `bench --shape`, and the subcommands collective, parallel, placement,
// mixed, constraint and device: how fast this machine is, and whether plans are right, as a table
// or JSON. `bench serve` is in bench_serve_command.cc.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/bench/constraint_bench.h"
#include "cli/bench/device_bench.h"
#include "cli/bench/explain_device.h"
#include "cli/bench/mixed_bench.h"
#include "cli/bench/model_bench.h"
#include "cli/bench/parallel_bench.h"
#include "cli/bench/placement_bench.h"
#include "cli/bench/shape_bench.h"
#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "collective/plan/algorithm.h"
#include "device/device_kinds.h"
#include "node/network/collective_bench.h"

namespace lockstep {
namespace {

struct CollectiveFlags {
  std::string algorithm = "auto";
  std::string wire = "f32";
  CollectiveBenchOptions options;
  int runs = 5;
  bool json = false;
};

struct BenchFlags {
  ModelBenchFlags model;
  ShapeFlags shape;
  bool explains_device = false;
  bool json = false;
};

Result<Json> bench_model(ModelBenchFlags flags) {
  const GroupSupervisorOptions options = TRY(bench_options(flags));
  double read_gb_s = TRY(read_speed_gb_s(options));
  const auto model = TRY(start_group(options));
  const ModelStatus status = model->status();
  limit_lengths(flags, status.context);
  const std::vector<ModelTimes> times = TRY(measure_in_turn({model.get()}, flags));
  const std::optional<GuessFigures> guesses = TRY(count_guesses(*model, flags));
  read_gb_s = std::max(read_gb_s, TRY(read_speed_gb_s(options)));
  uint64_t bytes_per_token = 0;
  for (const RankStatus& rank : status.ranks) bytes_per_token += rank.token_bytes;
  return Json(bench_json(flags, options,
                         {.name = status.name,
                          .times = times.front(),
                          .read_gb_s = read_gb_s,
                          .bytes_per_token = bytes_per_token,
                          .guesses = guesses}));
}

Result<Json> bench_collective(CollectiveFlags flags) {
  TRY(check_link_options(flags.options.link));
  flags.options.algorithm = TRY(parse_sum_algorithm(flags.algorithm));
  flags.options.wire = TRY(parse_wire(flags.wire));
  CollectiveTimes best;
  for (int run = 0; run < flags.runs; ++run) {
    const CollectiveTimes times = TRY(bench_collective_processes(flags.options));
    if (run == 0 || times.p50_us < best.p50_us) best = times;
  }
  const LinkOptions& link = flags.options.link;
  return Json(JsonObject{{"ranks", flags.options.ranks},
                         {"link", link_kind_name(link.kind)},
                         {"encrypt", link.encrypts},
                         {"rails", link.rails},
                         {"link_delay_us", link.delay_us},
                         {"link_gbit_s", link.gbit_s},
                         {"topology", topology_name(link.topology)},
                         {"algorithm", flags.algorithm},
                         {"wire", flags.wire},
                         {"bytes", flags.options.bytes},
                         {"rounds", flags.options.rounds},
                         {"runs", flags.runs},
                         {"min_us", best.min_us},
                         {"p50_us", best.p50_us},
                         {"p99_us", best.p99_us},
                         {"max_us", best.max_us}});
}

int finish_bench(Result<Json> result, bool as_json, void (*print)(const Json&)) {
  if (!result.ok()) return fail(result.error());
  as_json ? print_json(result.value()) : print(result.value());
  return 0;
}

void print_collective(const Json& result) {
  const auto number = [&](std::string_view key) { return find(result, key)->to_number<double>(); };
  print_line(
      fmt::format("all-reduce of {} bytes, {} over {}: p50 {:.2f} us, p99 {:.2f} us, "
                  "least {:.2f} us (best of {} runs)",
                  number("bytes"), counted(find(result, "ranks")->to_number<uint64_t>(), "rank"),
                  find(result, "link")->as_string().c_str(), number("p50_us"), number("p99_us"),
                  number("min_us"), number("runs")));
}

void add_collective(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<CollectiveFlags>();
  CLI::App* command = bench.add_subcommand("collective", "measure one all-reduce");
  command->add_option("--ranks", flags->options.ranks, "worker processes (default 2)")
      ->check(CLI::Range(1, GroupSupervisor::kRanksMax));
  add_link_flags(*command, flags->options.link);
  command->add_option("--algorithm", flags->algorithm, "auto (default), " + sum_algorithm_names());
  command->add_option("--wire", flags->wire, "f32 (default), bf16 or q8");
  command->add_option("--bytes", flags->options.bytes, "bytes of one vector (default 16384)")
      ->check(CLI::Range(4, 1 << 30));
  command->add_option("--rounds", flags->options.rounds, "of one run (default 5000)")
      ->check(at_least(1));
  command->add_option("--runs", flags->runs, "of which the best counts (default 5)")
      ->check(at_least(1));
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] {
    chosen = [flags] {
      return finish_bench(bench_collective(*flags), flags->json, print_collective);
    };
  });
}

struct ParallelCommandFlags {
  ParallelFlags bench;
  bool json = false;
};

void add_parallel(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<ParallelCommandFlags>();
  ParallelFlags& options = flags->bench;
  CLI::App* command =
      bench.add_subcommand("parallel", "one rank, tensor and pipeline parallel on slowed links");
  command
      ->add_option("--shape", options.shape.shape,
                   "random weights of a published model (qwen3-0.6b) or of a config.json")
      ->required();
  command->add_option("--bits", options.shape.bits, "of a weight: 2-6, 8, 16 (default) or 32");
  command->add_option("--format", options.shape.format, "of random weights, e.g. fp8, q4_k");
  command->add_option("--layers", options.shape.layers, "measure only this many layers")
      ->check(at_least(1));
  command->add_option("--delays", options.delays_us,
                      "extra us per message (default 0,3,50,300,1000,3000)");
  command->add_option("--link", options.link, "what joins the ranks (default shm)")
      ->check(CLI::IsMember({"shm", "tcp"}));
  command->add_option("--ranks", options.ranks, "that share the model (default 2)")
      ->check(CLI::Range(2, GroupSupervisor::kRanksMax));
  command->add_option("--threads", options.threads, "of each rank (default 1)")
      ->check(CLI::Range(1, 1024));
  command->add_option("-p", options.prompt_tokens, "prompt tokens (default 512)")
      ->check(at_least(1));
  command->add_option("-n", options.new_tokens, "new tokens (default 32)")->check(at_least(1));
  command->add_option("-r", options.repetitions, "rounds, of which the median counts (default 3)")
      ->check(at_least(1));
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] {
    chosen = [flags] {
      return finish_bench(bench_parallel(flags->bench), flags->json, print_parallel_bench);
    };
  });
}

struct PlacementCommandFlags {
  PlacementBenchFlags bench;
  bool json = false;
};

void add_placement(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<PlacementCommandFlags>();
  PlacementBenchFlags& options = flags->bench;
  CLI::App* command = bench.add_subcommand(
      "placement", "the planner against what emulated clusters reach, within some minutes");
  command->add_option("--clusters", options.clusters, "some of them, e.g. 4 or 1..3 (default all)");
  command->add_option("-n", options.new_tokens, "new tokens (default 6)")->check(CLI::Range(1, 32));
  command->add_option("-r", options.repetitions, "rounds, of which the median counts (default 5)")
      ->check(at_least(1));
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] {
    chosen = [flags] {
      return finish_bench(bench_placement(flags->bench), flags->json, print_placement_bench);
    };
  });
}

void add_model_or_shape(CLI::App& command, ModelOrShapeFlags& flags, const char* shape_help) {
  command.add_option("MODEL", flags.group.model, "a model folder, a .gguf file or org/name");
  command.add_option("--shape", flags.shape.shape, shape_help);
  command.add_option("--format", flags.shape.format, "of random weights, e.g. q4_0, fp8");
  command.add_option("--layers", flags.shape.layers, "measure only this many layers")
      ->check(at_least(1));
}

void require_one(const ModelOrShapeFlags& flags) {
  if (flags.shape.shape.empty() == flags.group.model.empty()) {
    throw CLI::RequiredError("one of MODEL and --shape");
  }
}

struct MixedCommandFlags {
  MixedBenchFlags bench;
  bool json = false;
};

void add_mixed(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<MixedCommandFlags>();
  MixedBenchFlags& options = flags->bench;
  CLI::App* command =
      bench.add_subcommand("mixed", "what a long prompt does to streams that are being generated");
  add_model_or_shape(*command, options.model,
                     "random weights of a published model (llama-3.2-1b) or of a config.json");
  command->add_option("--streams", options.streams, "that are generated (default 4)")
      ->check(CLI::Range(1, 1024));
  command->add_option("-p", options.prompt_tokens, "prompt tokens (default 4096)")
      ->check(at_least(1));
  command->add_option("-n", options.new_tokens, "of each stream before the prompt (default 128)")
      ->check(at_least(2));
  command->add_option("-r", options.repetitions, "prompts (default 1)")->check(at_least(1));
  command->add_flag("--json", flags->json, "one JSON value");
  add_group_flags(*command, options.model.group);
  command->callback([flags, &chosen] {
    require_one(flags->bench.model);
    chosen = [flags] {
      return finish_bench(bench_mixed(flags->bench), flags->json, print_mixed_bench);
    };
  });
}

struct ConstraintCommandFlags {
  ConstraintBenchFlags bench;
  bool json = false;
};

void add_constraint(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<ConstraintCommandFlags>();
  ConstraintBenchFlags& options = flags->bench;
  CLI::App* command =
      bench.add_subcommand("constraint", "what a constraint of the answer adds to a token");
  add_model_or_shape(*command, options.model,
                     "random weights of a folder with a config.json and a tokenizer");
  command->add_option("-n", options.new_tokens, "tokens of an answer (default 64)")
      ->check(at_least(2));
  command->add_option("-r", options.repetitions, "answers of each kind, in turn (default 5)")
      ->check(at_least(1));
  command->add_flag("--json", flags->json, "one JSON value");
  add_group_flags(*command, options.model.group);
  command->callback([flags, &chosen] {
    require_one(flags->bench.model);
    chosen = [flags] {
      return finish_bench(bench_constraint(flags->bench), flags->json, print_constraint_bench);
    };
  });
}

void add_device(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<DeviceBenchFlags>();
  CLI::App* command = bench.add_subcommand(
      "device", "how fast this machine's processor or GPU is, without a model, for plans");
  flags->device = kDeviceDefault;
  command->add_option(
      "--device", flags->device,
      fmt::format("what to measure: {} (default {})", kDeviceKinds, kDeviceDefault));
  command->add_option("--threads", flags->threads, "of the processor (default: its cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--profile", flags->profile,
                      "write this machine to a FILE for `lockstep plan --cluster`");
  command->add_option("--name", flags->name, "the machine's name in that file (default: its own)");
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, bench_device);
}

}  // namespace

void add_bench_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<BenchFlags>();
  ModelBenchFlags& model = flags->model;
  ShapeFlags& shape = flags->shape;
  CLI::App* command = app.add_subcommand("bench", "measure prompt and generation speed");
  command->add_option("MODEL", model.group.model,
                      "a model folder, a .gguf file or a pulled model (org/name)");
  command->add_option("--shape", shape.shape,
                      "random weights of a published model (llama-3.2-1b) or of a config.json");
  command->add_option("--bits", shape.bits,
                      "of a random weight: 2-6, 8, 16 (default) or 32; of MODEL's: 2-6, 8");
  command->add_option("--format", shape.format,
                      "of random weights, e.g. fp8, mxfp4, int4, q4_k (default: by --bits)");
  command->add_option("--layers", shape.layers, "measure this many layers and extrapolate")
      ->check(at_least(1));
  command->add_option("-p", model.prompt_tokens, "prompt tokens (default 512)")->check(at_least(1));
  command->add_option("-n", model.new_tokens, "new tokens (default 128)")->check(at_least(1));
  command->add_option("-r", model.repetitions, "rounds, of which the median counts (default 3)")
      ->check(at_least(1));
  command
      ->add_option("--streams", model.streams,
                   "sequences that generate at once; decode is the speed of all (default 1)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--draft-layer", model.group.spec.draft_layer,
                    "with MODEL's draft layer, whose guesses of a text without sense are seldom "
                    "right");
  add_draft_model_flag(*command, model.group.draft_model);
  command->add_flag("--explain-device", flags->explains_device,
                    "measure nothing: what a token after the prompt costs on a GPU, as planned");
  command->add_flag("--json", flags->json, "one JSON value");
  add_group_flags(*command, model.group);
  command->callback([flags, &chosen] {
    if (chosen) return;  // a subcommand, whose callback ran first
    const ShapeFlags& shape = flags->shape;
    const bool has_shape = !shape.shape.empty();
    if (has_shape == !flags->model.group.model.empty()) {
      throw CLI::RequiredError("one of MODEL, --shape and collective");
    }
    if (!has_shape && (!shape.format.empty() || shape.layers != 0)) {
      throw CLI::RequiredError("--shape, to which --format and --layers belong,");
    }
    if (has_shape && !flags->model.group.draft_model.empty()) {
      throw CLI::RequiredError("MODEL, to which --draft-model belongs,");
    }
    if (!has_shape) flags->model.group.spec.bits = shape.bits;
    chosen = [flags, has_shape] {
      if (flags->explains_device) {
        const ModelBenchFlags& model = flags->model;
        return finish_bench(explain_device({model.group.model, flags->shape, model.prompt_tokens}),
                            flags->json, print_explanation);
      }
      return finish_bench(
          has_shape ? bench_shape(flags->shape, flags->model) : bench_model(flags->model),
          flags->json, print_model_bench);
    };
  });
  add_collective(*command, chosen);
  add_parallel(*command, chosen);
  add_placement(*command, chosen);
  add_mixed(*command, chosen);
  add_constraint(*command, chosen);
  add_device(*command, chosen);
  add_bench_serve_command(*command, chosen);
}

}  // namespace lockstep
