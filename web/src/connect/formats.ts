// Files of settings as text. Values are quoted as JSON, which TOML's basic strings and YAML's double-quoted ones read the same way.
import { keyText, openAiBase, quoted, type Target } from "./target";

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);
const answerLength = (context: number): number => Math.min(8_192, Math.max(256, Math.floor(context / 4)));

export function openCodeJson(target: Target): string {
  const named = `lockstep/${target.model}`;
  const limit = target.context ? { limit: { context: target.context, output: answerLength(target.context) } } : {};
  return pretty({
    $schema: "https://opencode.ai/config.json", model: named, small_model: named,
    provider: { lockstep: {
      npm: "@ai-sdk/openai-compatible", name: "lockstep", options: { baseURL: openAiBase(target), apiKey: keyText(target) },
      models: { [target.model]: { name: target.model, tool_call: target.hasTools ?? true, ...limit } },
    } },
  });
}

export function codexToml(target: Target): string {
  return [
    `model = ${quoted(target.model)}`, 'model_provider = "lockstep"',
    ...(target.context ? [`model_context_window = ${target.context}`] : []), "",
    "[model_providers.lockstep]", 'name = "lockstep"', `base_url = ${quoted(openAiBase(target))}`, 'wire_api = "responses"',
    ...(target.keysNeeded || target.key ? ['env_key = "LOCKSTEP_API_KEY"'] : []),
  ].join("\n");
}

export function continueYaml(target: Target): string {
  return [
    "name: lockstep", "version: 0.0.1", "schema: v1", "models:", `  - name: ${quoted(target.model)}`, "    provider: openai",
    `    model: ${quoted(target.model)}`, `    apiBase: ${quoted(openAiBase(target))}`, `    apiKey: ${quoted(keyText(target))}`,
    "    roles: [chat, edit, apply]", ...(target.hasTools === false ? [] : ["    capabilities: [tool_use]"]),
    ...(target.context ? ["    defaultCompletionOptions:", `      contextLength: ${target.context}`,
      `      maxTokens: ${answerLength(target.context)}`] : []),
  ].join("\n");
}

export function zedJson(target: Target): string {
  return pretty({ language_models: { ollama: {
    api_url: target.origin, auto_discover: false,
    available_models: [{ name: target.model, display_name: target.model, max_tokens: target.context ?? 32_768,
      supports_tools: target.hasTools ?? true }],
  } } });
}

export function qwenJson(target: Target): string {
  return pretty({
    security: { auth: { selectedType: "openai" } }, model: { name: target.model },
    modelProviders: { openai: [{ id: target.model, name: target.model, baseUrl: openAiBase(target), envKey: "LOCKSTEP_API_KEY",
      ...(target.context ? { generationConfig: { contextWindowSize: target.context } } : {}) }] },
  });
}
