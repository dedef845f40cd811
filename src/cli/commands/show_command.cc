// `lockstep show`: facts about a model, without loading it.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/model_text.h"
#include "cli/text/output.h"
#include "model/load/model_summary.h"
#include "model/load/open_model.h"
#include "model/load/shape_model.h"
#include "model/shapes/known_shapes.h"

namespace lockstep {
namespace {

constexpr int kStateTokens = 1024;
// For the sizes of a shape, which has no files.
constexpr std::string_view kShapeFormats[] = {"mlx4", "mlx8", "bf16"};

struct ShowFlags {
  std::string model;
  bool json = false;
};

struct Shown {
  ModelConfig config{};
  ModelSummary summary{};
  const KnownShape* shape = nullptr;  // not on disk
  bool is_random = false;             // weights of a shape model: not on disk either
  uint64_t file_bytes = 0;
  bool has_draft_layer = false;
  std::string draft_problem{};
  std::string weights_problem{};  // why the weights cannot be read
  TokenizerFacts tokenizer{};
  std::optional<TemplateFacts> chat_template{};
};

Result<Shown> show_shape(const KnownShape& shape) {
  Shown shown{.config = TRY(parse_config(shape.config)), .shape = &shape};
  shown.summary = TRY(summarise(shown.config, nullptr));
  return shown;
}

Result<Shown> show(const std::string& model) {
  std::error_code ignored;
  const KnownShape* shape = find_known_shape(model);
  if (!is_shape_model(model) && !std::filesystem::exists(model, ignored)) {
    return shape ? show_shape(*shape) : Result<Shown>(read_shape_config(model).error());
  }
  Shown shown{.config = TRY(read_model_config(model)), .is_random = is_shape_model(model)};
  auto opened = open_model(model);
  const auto counted = opened.ok() ? summarise(shown.config, opened.value().source.get())
                                   : Result<ModelSummary>(opened.error());
  if (counted.ok()) {
    shown.summary = counted.value();
  } else {
    shown.weights_problem = counted.error().message;
    shown.summary = TRY(summarise(shown.config, nullptr));
  }
  if (opened.ok()) {
    shown.file_bytes = opened.value().source->file_bytes();
    use_draft_layer(opened.value());
    shown.has_draft_layer = opened.value().config.has_draft_layer();
    shown.draft_problem = opened.value().draft_problem;
  }
  shown.tokenizer = tokenizer_facts(model);
  shown.chat_template = chat_template_facts(model);
  return shown;
}

// For a shape: its bytes in the formats that people choose from.
Result<JsonObject> shape_sizes(const ModelConfig& config) {
  JsonObject sizes;
  for (const std::string_view format : kShapeFormats) {
    sizes[format] = TRY(open_random_source(format, random_tensors(config)))->file_bytes();
  }
  return sizes;
}

JsonArray shown_list(const auto& values) {
  JsonArray array;
  for (const auto& value : values) array.push_back(Json(std::string_view(value)));
  return array;
}

Json bits_or_null(const WeightCount& count) {
  return count.bytes == 0 ? Json() : Json(count.bits());
}

Json class_json(const ClassSummary& entry) {
  return JsonObject{
      {"name", weight_class_name(entry.weight_class)},     {"parameters", entry.count.parameters},
      {"active_parameters", entry.count.token_parameters}, {"bytes", entry.count.bytes},
      {"bits_per_weight", bits_or_null(entry.count)},      {"formats", shown_list(entry.formats)}};
}

Json shown_or_null(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

void add_text_json(const Shown& shown, JsonObject& json) {
  const TokenizerFacts& tokenizer = shown.tokenizer;
  json["tokenizer"] = tokenizer.kind.empty()
                          ? Json()
                          : Json(JsonObject{{"kind", tokenizer.kind},
                                            {"tokens", tokenizer.tokens},
                                            {"problem", shown_or_null(tokenizer.problem)}});
  json["chat_template"] = Json();
  if (!shown.chat_template) return;
  const TemplateFacts& facts = *shown.chat_template;
  json["chat_template"] = JsonObject{{"takes_tools", facts.takes_tools},
                                     {"flags", shown_list(facts.flags)},
                                     {"tool_format", shown_or_null(facts.tool_format)}};
}

Result<Json> shown_json(const ShowFlags& flags, const Shown& shown) {
  const ModelConfig& config = shown.config;
  const WeightCount& total = shown.summary.total;
  JsonObject json{{"model", flags.model},
                  {"architecture", config.architecture->name},
                  {"parameters", total.parameters},
                  {"active_parameters", total.token_parameters},
                  {"layers", config.layers},
                  {"hidden", config.hidden},
                  {"heads", config.heads},
                  {"kv_heads", config.kv_heads},
                  {"head_dim", config.head_dim},
                  {"experts", config.experts.count},
                  {"chosen_experts", config.experts.chosen},
                  {"draft_layer", shown.has_draft_layer},
                  {"vocabulary", config.vocab_size},
                  {"context", config.positions_max},
                  {"kv", kv_kind_name(kKvDefault)},
                  {"state_bytes_per_1k_tokens", state_bytes(config, kKvDefault, kStateTokens)},
                  {"recurrent_state_bytes", recurrent_bytes(config)},
                  {"size_bytes", shown.file_bytes},
                  {"weight_bytes", total.bytes},
                  {"weight_bytes_per_token", total.token_bytes},
                  {"bits_per_weight", bits_or_null(total)},
                  {"weights_problem", shown_or_null(shown.weights_problem)}};
  if (shown.shape) {
    json["example"] = shown.shape->example;
    json["size_bytes_by_format"] = TRY(shape_sizes(config));
  }
  JsonArray classes;
  for (const ClassSummary& entry : shown.summary.classes) classes.push_back(class_json(entry));
  json["classes"] = std::move(classes);
  add_text_json(shown, json);
  return Json(std::move(json));
}

std::string count_text(uint64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e12) return fmt::format("{:.2f} T", value / 1e12);
  if (value >= 1e9) return fmt::format("{:.2f} B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.2f} K", value / 1e3);
  return fmt::format("{}", count);
}

void line(std::string_view name, std::string_view value) {
  print_line(fmt::format("  {:<20}  {}", name, value));
}

void print_shown_model(const Shown& shown) {
  const ModelConfig& config = shown.config;
  const WeightCount& total = shown.summary.total;
  print_line("Model");
  line("architecture", config.architecture->name);
  if (shown.shape) line("example", shown.shape->example);
  line("parameters", count_text(total.parameters));
  line("active parameters", count_text(total.token_parameters) + " for each token");
  line("layers", fmt::format("{}, {} wide", config.layers, config.hidden));
  line("attention",
       config.attention_layer().is_latent()
           ? fmt::format("{} heads over a latent of {}", config.heads, config.latent.kv_rank)
           : fmt::format("{} heads of {}, {} for keys and values", config.heads, config.head_dim,
                         config.kv_heads));
  if (config.experts.count > 0) {
    line("experts",
         fmt::format("{}, {} for each token", config.experts.count, config.experts.chosen));
  }
  if (shown.has_draft_layer) line("draft layer", "guesses further tokens");
  if (!shown.draft_problem.empty()) line("draft layer", "left out: " + shown.draft_problem);
  line("vocabulary", fmt::format("{} tokens", config.vocab_size));
  line("context", fmt::format("{} tokens", config.positions_max));
  line("memory of 1k tokens", fmt::format("{}, keys and values in {}",
                                          bytes_text(state_bytes(config, kKvDefault, kStateTokens)),
                                          kv_kind_name(kKvDefault)));
  if (config.delta) {
    line("and of a sequence",
         fmt::format("{} in its recurrent layers", bytes_text(recurrent_bytes(config))));
  }
}

void print_classes(const ModelSummary& summary) {
  print_line(fmt::format("  {:<20}  {:>10}  {:>10}  {:>6}  {}", "", "parameters", "active", "bits",
                         "format"));
  for (const ClassSummary& entry : summary.classes) {
    const std::string bits =
        entry.count.bytes == 0 ? "-" : fmt::format("{:.2f}", entry.count.bits());
    print_line(fmt::format(
        "  {:<20}  {:>10}  {:>10}  {:>6}  {}", weight_class_name(entry.weight_class),
        count_text(entry.count.parameters), count_text(entry.count.token_parameters), bits,
        entry.formats.empty() ? "-" : fmt::format("{}", fmt::join(entry.formats, "; "))));
  }
}

Status print_weights(const Shown& shown) {
  const WeightCount& total = shown.summary.total;
  print_line("\nWeights");
  if (shown.shape) {
    for (const auto& entry : TRY(shape_sizes(shown.config))) {
      line(fmt::format("size as {}", std::string_view(entry.key())),
           bytes_text(entry.value().to_number<uint64_t>()));
    }
  } else if (!shown.weights_problem.empty()) {
    line("unknown", shown.weights_problem);
  } else {
    line(shown.is_random ? "size as a file" : "size on disk", bytes_text(shown.file_bytes));
    line("weights", fmt::format("{}, {} read for each token", bytes_text(total.bytes),
                                bytes_text(total.token_bytes)));
    line("bits of a weight", fmt::format("{:.2f}", total.bits()));
  }
  print_classes(shown.summary);
  return Ok{};
}

void print_text(const Shown& shown) {
  const TokenizerFacts& tokenizer = shown.tokenizer;
  print_line("\nText");
  if (tokenizer.kind.empty()) {
    line("tokenizer", "none");
  } else if (!tokenizer.problem.empty()) {
    line("tokenizer", fmt::format("{}, unknown here: {}", tokenizer.kind, tokenizer.problem));
  } else {
    line("tokenizer", fmt::format("{}, {} tokens", tokenizer.kind, tokenizer.tokens));
  }
  if (!shown.chat_template) return line("chat template", "none");
  const TemplateFacts& facts = *shown.chat_template;
  line("chat template",
       facts.takes_tools ? "present, supports tools" : "present, does not support tools");
  line("template flags", facts.flags.empty() ? "none that are known"
                                             : fmt::format("{}", fmt::join(facts.flags, ", ")));
  line("tool calls", facts.tool_format.empty() ? "unknown format" : facts.tool_format);
}

Result<Shown> find_and_show(const std::string& model) {
  return show(TRY(find_model(model)));
}

int run_show_command(const ShowFlags& flags) {
  const auto shown = find_and_show(flags.model);
  if (!shown.ok()) return fail(shown.error());
  if (flags.json) {
    const auto json = shown_json(flags, shown.value());
    if (!json.ok()) return fail(json.error());
    print_json(json.value());
    return 0;
  }
  print_shown_model(shown.value());
  const Status printed = print_weights(shown.value());
  if (!printed.ok()) return fail(printed.error());
  if (!shown.value().shape) print_text(shown.value());
  return 0;
}

}  // namespace

void add_show_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = app.add_subcommand("show", "say what a model is, without loading it");
  command
      ->add_option(
          "MODEL", flags->model,
          "a model folder, a .gguf file, a pulled model (org/name), or a published one by its "
          "short name (llama-3.2-1b)")
      ->required();
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] { chosen = [flags] { return run_show_command(*flags); }; });
}

}  // namespace lockstep
