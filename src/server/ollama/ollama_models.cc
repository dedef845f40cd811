#include "server/ollama/ollama_models.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "node/models/model_card.h"
#include "server/generation/api_context.h"
#include "server/generation/fim_prompt.h"
#include "server/ollama/ollama_answer.h"
#include "server/ollama/ollama_options.h"
#include "server/ollama/ollama_request.h"

namespace lockstep {
namespace {

constexpr const char* kForEver = "9999-12-31T23:59:59Z";
constexpr int64_t kForEverMs = 10'000'000'000'000;  // or longer

// "LlamaForCausalLM" is the family "llama".
std::string family_of(std::string_view architecture) {
  constexpr std::string_view kEnding = "ForCausalLM";
  if (architecture.ends_with(kEnding)) architecture.remove_suffix(kEnding.size());
  std::string family(architecture.empty() ? "unknown" : architecture);
  std::transform(family.begin(), family.end(), family.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return family;
}

// "3.2B", "260K"
std::string parameter_text(uint64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.1f}B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f}M", value / 1e6);
  return fmt::format("{:.0f}K", value / 1e3);
}

uint64_t weight_bytes(const ModelStatus& status) {
  uint64_t bytes = 0;
  for (const RankStatus& rank : status.ranks) bytes += rank.weight_bytes;
  return bytes;
}

JsonObject details_json(const ModelCard& facts) {
  const std::string family = family_of(facts.architecture);
  JsonArray families;
  families.emplace_back(family);
  return {{"parent_model", ""},
          {"format", facts.format},
          {"family", family},
          {"families", std::move(families)},
          {"parameter_size", parameter_text(facts.parameters)},
          {"quantization_level", facts.stored_format.empty() ? "unknown" : facts.stored_format}};
}

// When the model will be unloaded if it is not used.
std::string expiry(const ClusterReport& report, const std::string& model) {
  for (const ClusterModelReport& known : report.models) {
    if (known.entry.name != model || !known.idle_left_ms) continue;
    if (*known.idle_left_ms >= kForEverMs) break;
    return rfc3339(unix_now_us() + 1000 * *known.idle_left_ms);
  }
  return kForEver;
}

// The fields that tags and ps share.
JsonObject listed_json(const ModelStatus& status, const ModelCard& facts) {
  return {{"name", status.name},
          {"model", status.name},
          {"size", std::max(facts.file_bytes, weight_bytes(status))},
          {"digest", facts.digest},
          {"details", details_json(facts)}};
}

JsonArray capabilities_of(const ModelService& model, const ModelCard& facts) {
  JsonArray capabilities;
  if (facts.is_embedding) {
    capabilities.emplace_back("embedding");
    return capabilities;
  }
  capabilities.emplace_back("completion");
  const ModelChatFormat format = model.chat_format();
  if (format.ok() && format.value() != nullptr) {
    capabilities.emplace_back("tools");  // the prompt describes them if need be
    const ToolFormat* written = format.value()->tool_format(false);
    if (written != nullptr && (written->is_harmony || !written->reasoning_begin.empty())) {
      capabilities.emplace_back("thinking");
    }
  }
  const auto tokenizer = model.tokenizer();
  if (tokenizer != nullptr && has_fim(*tokenizer)) capabilities.emplace_back("insert");
  return capabilities;
}

JsonObject info_json(const ModelStatus& status, const ModelCard& facts) {
  const std::string family = family_of(facts.architecture);
  JsonObject info{{"general.architecture", family},
                  {"general.basename", status.name},
                  {"general.parameter_count", facts.parameters}};
  const auto add = [&](const char* key, int64_t value) {
    if (value > 0) info[family + "." + key] = value;
  };
  // The context that fits here, not the model's own maximum: clients plan by it.
  add("context_length", status.context > 0 ? status.context : facts.positions_max);
  add("block_count", facts.layers);
  add("embedding_length", facts.hidden);
  add("feed_forward_length", facts.ffn);
  add("attention.head_count", facts.heads);
  add("attention.head_count_kv", facts.kv_heads);
  add("attention.key_length", facts.head_dim);
  add("vocab_size", facts.vocab_size);
  add("expert_count", facts.experts);
  add("expert_used_count", facts.chosen_experts);
  return info;
}

// Lines of Ollama's Modelfile.
std::string parameters_text(const ModelService& model) {
  const SamplingDefaults defaults = ollama_sampling_defaults(model.sampling_defaults());
  return fmt::format("temperature {}\ntop_k {}\ntop_p {}", *defaults.temperature, *defaults.top_k,
                     *defaults.top_p);
}

std::string template_text(const ModelService& model) {
  const ModelChatFormat format = model.chat_format();
  if (!format.ok() || format.value() == nullptr) return "";
  return std::string(format.value()->text());
}

HttpResponse json_response(JsonObject body) {
  return {200, "application/json", dump_json(body), {}};
}

ApiResult<JsonObject> show(const ApiContext& context, const HttpRequest& request) {
  const std::string name = ollama_model_name(context, TRY(parse_ollama_model(request.body)));
  // Showing a model does not count as a use; only an alias needs find_model(), which does.
  auto model = model_named(context.models(), name);
  if (model == nullptr) model = TRY(context.find_model(name));
  const ModelStatus status = model->status();
  const ModelCard facts = model->card();
  return JsonObject{
      {"license", ""},
      {"modelfile", fmt::format("# {} is served by lockstep\nFROM {}\n", status.name, status.name)},
      {"parameters", parameters_text(*model)},
      {"template", template_text(*model)},
      {"details", details_json(facts)},
      {"model_info", info_json(status, facts)},
      {"capabilities", capabilities_of(*model, facts)},
      {"modified_at", rfc3339(facts.modified_us)}};
}

}  // namespace

std::string ollama_model_name(const ApiContext& context, const std::string& name) {
  constexpr std::string_view kTag = ":latest";
  if (!name.ends_with(kTag) || model_named(context.models(), name) != nullptr) return name;
  return name.substr(0, name.size() - kTag.size());
}

bool can_keep(const ApiContext& context, const std::string& model, std::chrono::milliseconds time) {
  return time.count() < 0 || context.is_on_demand(model);
}

void serve_ollama_version(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  reply.send(json_response({{"version", kOllamaVersion}, {"lockstep", context.version()}}));
}

void serve_ollama_tags(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  JsonArray models;
  for (const auto& model : context.models()) {
    const ModelCard facts = model->card();
    JsonObject listed = listed_json(model->status(), facts);
    listed["modified_at"] = rfc3339(facts.modified_us);
    models.push_back(std::move(listed));
  }
  reply.send(json_response({{"models", std::move(models)}}));
}

void serve_ollama_ps(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  const ClusterReport report = context.cluster() ? context.cluster()->report() : ClusterReport{};
  JsonArray models;
  for (const auto& model : context.models()) {
    const ModelStatus status = model->status();
    if (status.state != ModelStatus::State::kReady) continue;
    JsonObject listed = listed_json(status, model->card());
    listed["expires_at"] = expiry(report, status.name);
    listed["size_vram"] = 0;
    listed["context_length"] = status.context;
    models.push_back(std::move(listed));
  }
  reply.send(json_response({{"models", std::move(models)}}));
}

void serve_ollama_show(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  auto shown = show(context, request);
  if (!shown.ok()) return reply.send(error_response(shown.error(), ErrorStyle::kOllama));
  reply.send(json_response(std::move(shown.value())));
}

}  // namespace lockstep
