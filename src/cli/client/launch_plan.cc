#include "cli/client/launch_plan.h"

#include <fmt/core.h>

#include "json/json.h"

namespace lockstep {
namespace {

// For clients that insist on a key; a node without keys ignores it.
constexpr const char* kNoKey = "none";
constexpr const char* kKeyName = "LOCKSTEP_API_KEY";

std::string key_or_none(const LaunchTarget& target) {
  return target.key.empty() ? kNoKey : target.key;
}

LaunchPlan plan_claude(const LaunchTarget& target) {
  LaunchPlan plan{
      .program = "claude", .arguments = {}, .environment = {}, .file = {}, .content = {}};
  plan.environment = {{"ANTHROPIC_BASE_URL", target.base},
                      {"ANTHROPIC_AUTH_TOKEN", key_or_none(target)},
                      {"ANTHROPIC_MODEL", target.model},
                      {"ANTHROPIC_DEFAULT_HAIKU_MODEL", target.model},
                      {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"}};
  JsonObject variables;
  for (const auto& [name, value] : plan.environment) variables[name] = value;
  variables["ANTHROPIC_AUTH_TOKEN"] = kNoKey;
  plan.file = ".claude/settings.json";
  plan.content = dump_json(JsonObject{{"env", std::move(variables)}}) + "\n";
  return plan;
}

// A TOML string has the same escapes.
std::string toml(std::string_view text) {
  return json_string(text);
}

LaunchPlan plan_codex(const LaunchTarget& target) {
  LaunchPlan plan{
      .program = "codex", .arguments = {}, .environment = {}, .file = {}, .content = {}};
  std::vector<std::pair<std::string, std::string>> provider{{"name", toml("lockstep")},
                                                            {"base_url", toml(target.base + "/v1")},
                                                            {"wire_api", toml("responses")}};
  if (!target.key.empty()) {
    provider.emplace_back("env_key", toml(kKeyName));
    plan.environment.emplace_back(kKeyName, target.key);
  }
  const auto set = [&](const std::string& key, const std::string& value) {
    plan.arguments.insert(plan.arguments.end(), {"-c", key + "=" + value});
  };
  plan.content =
      fmt::format("model = {}\nmodel_provider = \"lockstep\"\n\n[model_providers.lockstep]\n",
                  toml(target.model));
  set("model", toml(target.model));
  set("model_provider", toml("lockstep"));
  for (const auto& [key, value] : provider) {
    set("model_providers.lockstep." + key, value);
    plan.content += fmt::format("{} = {}\n", key, value);
  }
  plan.file = ".codex/config.toml";
  return plan;
}

LaunchPlan plan_opencode(const LaunchTarget& target) {
  LaunchPlan plan{
      .program = "opencode", .arguments = {}, .environment = {}, .file = {}, .content = {}};
  const auto config = [&](const std::string& key) {
    JsonObject models;
    models[target.model] = JsonObject{{"name", target.model}, {"tool_call", true}};
    const std::string named = "lockstep/" + target.model;
    return dump_json(JsonObject{
        {"$schema", "https://opencode.ai/config.json"},
        {"model", named},
        {"small_model", named},
        {"provider",
         JsonObject{{"lockstep", JsonObject{{"npm", "@ai-sdk/openai-compatible"},
                                            {"name", "lockstep"},
                                            {"options", JsonObject{{"baseURL", target.base + "/v1"},
                                                                   {"apiKey", key}}},
                                            {"models", std::move(models)}}}}}});
  };
  plan.environment = {{"OPENCODE_CONFIG_CONTENT", config(key_or_none(target))}};
  plan.file = ".config/opencode/opencode.json";
  plan.content = config(target.key.empty() ? kNoKey : fmt::format("{{env:{}}}", kKeyName)) + "\n";
  return plan;
}

struct LaunchClient {
  std::string_view name;
  LaunchPlan (*plan)(const LaunchTarget&);
};
constexpr LaunchClient kLaunchClients[] = {
    {"claude", plan_claude}, {"codex", plan_codex}, {"opencode", plan_opencode}};

}  // namespace

std::vector<std::string> launch_clients() {
  std::vector<std::string> names;
  for (const LaunchClient& client : kLaunchClients) names.emplace_back(client.name);
  return names;
}

Result<LaunchPlan> plan_launch(std::string_view client, const LaunchTarget& target) {
  std::string known;
  for (const LaunchClient& one : kLaunchClients) {
    if (one.name == client) return one.plan(target);
    known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("lockstep knows no client {}; it knows {}", client, known)};
}

}  // namespace lockstep
