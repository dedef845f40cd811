#include "cli/flags/group_flags.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "base/double_chars.h"
#include "cli/text/output.h"
#include "cli/text/quantisation_text.h"
#include "cli/text/terminal_text.h"
#include "cli/text/transfer_text.h"
#include "cli/text/wait_line.h"
#include "device/device_kinds.h"
#include "hub/files/model_id.h"
#include "hub/model_cache.h"
#include "model/load/shape_model.h"
#include "weights/quantised/quantise.h"

namespace lockstep {
namespace {

constexpr double kGib = 1 << 30;

// A value that has a name on the command line; its check must refuse names that `parse` refuses.
template <class Place, class Value>
CLI::Option& add_named(CLI::App& command, const std::string& flag, Place& value,
                       Result<Value> (*parse)(std::string_view), const std::string& help) {
  const auto set = [&value, parse](const std::string& name) {
    if (const auto parsed = parse(name); parsed.ok()) value = parsed.value();
  };
  return *command.add_option_function<std::string>(flag, set, help);
}

// `text` is "3:1" or "2:1:1"; empty: equal shares for `ranks`.
Result<std::vector<double>> parse_shares(const std::string& text, int ranks) {
  const Error bad{ErrorCode::kInvalidArgument,
                  fmt::format("--shares {} is invalid: write positive numbers such as 3:1", text)};
  std::vector<double> shares;
  if (text.empty()) return equal_shares(std::max(ranks, 1));
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    double share = 0;
    const auto parsed = double_from_chars(at, end, share);
    if (parsed.ec != std::errc() || !(share > 0)) return bad;
    shares.push_back(share);
    at = parsed.ptr;
    if (at == end) break;
    if (*at++ != ':') return bad;
  }
  if (ranks > 0 && static_cast<size_t>(ranks) != shares.size()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("--shares {} names {} ranks, --ranks says {}", text, shares.size(), ranks)};
  }
  if (shares.size() > GroupSupervisor::kRanksMax) return bad;
  return shares;
}

// For `ranks` ranks, by --parallel and --stages.
Result<int> stage_count(const GroupFlags& flags, int ranks) {
  if (flags.parallel == "tensor" && flags.stages > 1) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("--stages {} is a pipeline, leave out --parallel tensor", flags.stages)};
  }
  if (flags.parallel == "pipeline" && flags.stages == 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "--parallel pipeline has more than one stage, not --stages 1"};
  }
  if (flags.parallel == "pipeline" && ranks == 1) {
    return Error{ErrorCode::kInvalidArgument,
                 "--parallel pipeline needs at least two ranks, like --ranks 2"};
  }
  const int own = flags.parallel == "pipeline" ? ranks : 1;
  const int stages = flags.stages > 0 ? flags.stages : own;
  if (ranks % stages != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--stages {} does not divide {} ranks", stages, ranks)};
  }
  return stages;
}

}  // namespace

CLI::Validator at_least(int least) {
  const auto check = [least](std::string& text) -> std::string {
    int value = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec == std::errc() && parsed.ptr == end && value >= least) return "";
    return fmt::format("must be a whole number from {} to {}, not {}", least,
                       std::numeric_limits<int>::max(), text);
  };
  return CLI::Validator(check, fmt::format(">= {}", least));
}

void add_link_flags(CLI::App& command, LinkOptions& link) {
  add_named(command, "--link", link.kind, parse_link_kind,
            "what joins the ranks: shm, tcp or verbs (default shm)")
      .check(CLI::IsMember({"shm", "tcp", "verbs"}));
  command.add_option(
      "--rails", link.rails,
      "connections of each pair of ranks that are used together (tcp, verbs; default 1)");
  command.add_flag("--encrypt", link.encrypts,
                   "encrypt all TCP links (links between machines always are)");
  command.add_option("--link-delay-us", link.delay_us,
                     "an experiment: every message arrives this much later");
  command.add_option("--link-gbit-s", link.gbit_s,
                     "an experiment: links that carry no more than this");
  add_named(command, "--topology", link.topology, parse_topology,
            "which ranks have a link: mesh, or line, ring and star, where others relay")
      .check(CLI::IsMember({"mesh", "line", "ring", "star"}));
}

void add_kv_flag(CLI::App& command, std::optional<KvKind>& kv) {
  add_named(command, "--kv", kv, parse_kv_kind,
            fmt::format("how keys and values are stored: f32, bf16, f16 or q8 (default {}, with "
                        "--exact f32)",
                        kv_kind_name(kKvDefault)))
      .check(CLI::IsMember({"f32", "bf16", "f16", "q8"}));
}

void add_ngrams_flag(CLI::App& command, bool& ngrams_on_disk) {
  command.add_flag("--ngrams-on-disk", ngrams_on_disk,
                   "leave the model's table of n-grams in its files, and read each token's rows "
                   "there: less memory, the same text");
}

void add_group_flags(CLI::App& command, GroupFlags& flags) {
  GroupSpec& spec = flags.spec;
  command.add_option("--ranks", flags.ranks, "worker processes that share the model (default 1)")
      ->check(CLI::Range(1, GroupSupervisor::kRanksMax));
  command.add_option("--shares", flags.shares,
                     "how much each rank takes, e.g. 3:1 (default equal)");
  command
      .add_option("--parallel", flags.parallel,
                  "how ranks share the model: tensor (a part of each layer, default) or pipeline "
                  "(a part of the layers)")
      ->check(CLI::IsMember({"tensor", "pipeline"}));
  command
      .add_option("--stages", flags.stages,
                  "stages of a pipeline, each of ranks / stages ranks (default: pipeline as many "
                  "as ranks, tensor 1)")
      ->check(CLI::Range(1, GroupSupervisor::kRanksMax));
  add_link_flags(command, spec.link);
  add_named(command, "--wire", spec.wire, parse_wire,
            "how partial sums of prompts are sent: f32, or bf16 and q8, which are shorter but make "
            "the answer depend on how the model is cut (default f32)")
      .check(CLI::IsMember({"f32", "bf16", "q8"}));
  command
      .add_option("--threads", spec.threads,
                  "threads of each rank (default: the machine's cores / ranks)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option(
          "--context", spec.context,
          fmt::format("positions per sequence (default: the model's, at most {})", kContextDefault))
      ->check(at_least(1));
  command.add_flag("--pin", spec.pin_threads, "bind each thread to its own core");
  command.add_flag("--exact", spec.exact,
                   "keep keys and values in float32, and activations where weights are quantised "
                   "(slower)");
  add_kv_flag(command, spec.kv);
  add_ngrams_flag(command, spec.ngrams_on_disk);
  command.add_option(
      "--device", spec.device,
      fmt::format("where ranks compute: {}, or one of these for each rank as in vulkan,cpu; auto "
                  "is the first GPU, if there is one that can be used (default {})",
                  kDeviceKinds, kDeviceDefault));
}

void add_load_limits(CLI::App& command, GroupFlags& flags) {
  command
      .add_option("--streams", flags.spec.sequences_max,
                  fmt::format("sequences that run together; each takes memory for a whole context "
                              "(default {})",
                              kSequencesDefault))
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--queue", flags.queue_max,
                  fmt::format("requests that may wait beyond those; others get 429 (default {})",
                              kQueueDefault))
      ->check(CLI::Range(0, 1024));
}

void add_bits_flag(CLI::App& command, GroupFlags& flags) {
  command.add_option("--bits", flags.spec.bits,
                     "quantise the weights to 2, 3, 4, 5, 6 or 8 bits while they are read");
  command.add_flag("-v,--verbose", flags.verbose, "with --bits: the error of every tensor");
}

void add_cache_flag(CLI::App& command, GroupFlags& flags, const char* otherwise) {
  command
      .add_option("--cache-disk", flags.cache_disk_gib,
                  fmt::format("GiB of this disk for the state of prompts, so that they are not "
                              "computed again after a restart; 0: none ({})",
                              otherwise))
      ->check(CLI::Range(0.0, kDiskCacheBytesMax / kGib));
}

void add_draft_model_flag(CLI::App& command, std::string& draft_model) {
  command.add_option("--draft-model", draft_model,
                     "a smaller model with the same tokens, which guesses instead of the draft "
                     "layer, or the layer in files of its own; the text stays the same");
}

void add_draft_flags(CLI::App& command, int& draft_tokens, GroupFlags& flags) {
  flags.spec.draft_layer = true;
  command.add_flag("!--no-draft-layer", flags.spec.draft_layer,
                   "leave the model's draft layer (MTP) out, which takes memory; without it tokens "
                   "come one by one; the text stays the same");
  add_draft_model_flag(command, flags.draft_model);
  command
      .add_option("--draft", draft_tokens,
                  "draft this many tokens from the text so far and verify them together (default "
                  "0); the text stays the same")
      ->check(CLI::Range(0, kDraftTokensMax));
}

Result<DiskCache> disk_cache_of(const GroupFlags& flags) {
  const double gib = flags.cache_disk_gib.value_or(0);
  if (gib == 0) return DiskCache{};
  return disk_cache(static_cast<uint64_t>(gib * kGib));
}

Result<GroupSupervisorOptions> group_options(const GroupFlags& flags) {
  GroupSupervisorOptions options{.spec = flags.spec, .queue_max = flags.queue_max};
  GroupSpec& spec = options.spec;
  spec.model = TRY(find_model(flags.model));
  if (!flags.draft_model.empty()) spec.draft_model = TRY(find_model(flags.draft_model));
  spec.shares = TRY(parse_shares(flags.shares, flags.ranks));
  const int stages = TRY(stage_count(flags, spec.size()));
  TRY(check_link_options(spec.link));
  TRY(check_kv(spec.exact, spec.kv));
  TRY(check_device_kinds(spec.device, spec.size()));
  spec.link.stages = stages;
  if (spec.bits != 0 && !is_affine_bits(spec.bits)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--bits {} is not possible, {} are", spec.bits, kAffineBits)};
  }
  options.disk_cache = TRY(disk_cache_of(flags));
  return options;
}

Result<std::string> find_model(const std::string& model) {
  std::error_code ignored;
  const auto id = parse_model_id(model);
  const bool is_file = model.ends_with(".gguf") || model.ends_with(".jinja");
  const bool is_path = std::filesystem::exists(model, ignored) || !id.ok() ||
                       (is_file && id.value().file.empty());  // "folder/file.gguf"
  if (is_path || is_shape_model(model)) return model;
  return resolve_model(model, TRY(hub_settings_from_environment()));
}

Result<std::unique_ptr<GroupSupervisor>> start_group(const GroupSupervisorOptions& options) {
  WaitLine line(stderr_manner());
  const std::string ranks = counted(static_cast<uint64_t>(options.spec.size()), "rank");
  return GroupSupervisor::start(options, [&](const ModelStatus& status) {
    const auto& loading = status.loading;
    const std::string progress =
        loading ? ": " + progress_text(loading->read_bytes, loading->whole_bytes, loading->bytes_s)
                : " ...";
    line.show(fmt::format("loading {} on {}{}", harmless_line(status.name), ranks, progress),
              WaitLine::Clock::now());
  });
}

Status check_context(size_t prompt_tokens, const ModelStatus& status) {
  if (prompt_tokens <= static_cast<size_t>(status.context)) return Ok{};
  return Error{ErrorCode::kExhausted,
               fmt::format("the prompt has {} tokens but the context holds {}; --context {} makes "
                           "room if the model has that many positions",
                           prompt_tokens, status.context, prompt_tokens)};
}

void print_quantisation(const GroupFlags& flags, const ModelStatus& status) {
  if (!status.quantised) return;
  for (const std::string& line : quantisation_lines(*status.quantised, flags.verbose)) {
    fmt::print(stderr, "{}\n", line);
  }
}

}  // namespace lockstep
