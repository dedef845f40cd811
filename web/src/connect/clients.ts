// The clients that Connect has settings for. Each entry says where its format is described; `lockstep launch` (src/cli) has the same
// facts for Claude Code, Codex and OpenCode, and tests/clients/agents.py runs six of these agents with them.
import { continueYaml, codexToml, openCodeJson, qwenJson, zedJson } from "./formats";
import { isLoopback, keyText, openAiBase, quoted, shellWord, type Target } from "./target";

export type ProbeKind = "chat" | "chat_tools" | "messages" | "responses" | "ollama";

export interface Snippet {
  title: string; // a file, a place in a menu, "in a terminal"
  text: string;
  note?: string;
}

export interface Client {
  id: string;
  name: string;
  what: string;
  probe: ProbeKind;
  isAgent: boolean; // sends long instructions and calls tools
  firstRequest?: number; // tokens of its first request, a quarter of the characters that tools/test_clients.sh recorded
  source: string; // where its format is described
  snippets: (target: Target) => Snippet[];
}

const hasKey = (target: Target): boolean => target.keysNeeded || target.key !== "";
const exported = (name: string, value: string): string => `export ${name}=${shellWord(value)}`;

export const CLIENTS: Client[] = [
  {
    id: "open-webui", name: "Open WebUI", what: "a chat page with users", probe: "chat", isAgent: false,
    source: "docs.openwebui.com: Environment variables, OpenAI; Connections",
    snippets: (target) => [
      { title: "In a terminal, installed with pip",
        text: `OPENAI_API_BASE_URL=${shellWord(openAiBase(target))} OPENAI_API_KEY=${shellWord(keyText(target))} open-webui serve` },
      { title: "In a terminal, with Docker", text: [
        `docker run -d ${isLoopback(target.origin) ? "--network=host" : "-p 3000:8080"} -v open-webui:/app/backend/data \\`,
        `  -e OPENAI_API_BASE_URL=${shellWord(openAiBase(target))} -e OPENAI_API_KEY=${shellWord(keyText(target))} \\`,
        "  openwebui/open-webui:main"].join("\n"),
      note: isLoopback(target.origin)
        ? "With the network of the host, which Docker has on Linux, the page is on port 8080. A container's own localhost is the container."
        : "The page is then on port 3000." },
      { title: "Or in its page: Admin Settings, Connections, OpenAI", text: `URL  ${openAiBase(target)}\nKey  ${keyText(target)}`,
        note: "The variables count only at its first start; later it takes what its page has stored." },
    ],
  },
  {
    id: "opencode", name: "OpenCode", what: "a coding agent in the terminal", probe: "chat_tools", isAgent: true, firstRequest: 8_000,
    source: "opencode.ai/docs: Config; Providers, Custom provider",
    snippets: (target) => [
      { title: "~/.config/opencode/opencode.json", text: openCodeJson(target) },
      launched("opencode", target),
    ],
  },
  {
    id: "claude-code", name: "Claude Code", what: "a coding agent in the terminal", probe: "messages", isAgent: true,
    source: "code.claude.com/docs: LLM gateway configuration; Model configuration",
    snippets: (target) => [
      { title: "In a terminal", text: [
        exported("ANTHROPIC_BASE_URL", target.origin), exported("ANTHROPIC_AUTH_TOKEN", keyText(target)),
        exported("ANTHROPIC_MODEL", target.model), exported("ANTHROPIC_DEFAULT_HAIKU_MODEL", target.model),
        exported("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), "claude"].join("\n"),
      note: "The address has no /v1 here. The same names and values may stand in \"env\" of ~/.claude/settings.json." },
      launched("claude", target),
    ],
  },
  {
    id: "codex", name: "Codex", what: "a coding agent in the terminal", probe: "responses", isAgent: true,
    source: "github.com/openai/codex: docs/config.md, model_providers",
    snippets: (target) => [
      { title: "~/.codex/config.toml", text: codexToml(target),
        note: hasKey(target) ? `Codex reads the key from a variable: ${exported("LOCKSTEP_API_KEY", keyText(target))}` : undefined },
      launched("codex", target),
    ],
  },
  {
    id: "cline", name: "Cline", what: "a coding agent in VS Code and the terminal", probe: "chat_tools", isAgent: true, firstRequest: 5_500,
    source: "docs.cline.bot: OpenAI Compatible; cline auth --help (3.0)",
    snippets: (target) => [
      { title: "In VS Code: Cline, Settings, API Provider: OpenAI Compatible", text: [
        `Base URL  ${openAiBase(target)}`, `API Key   ${keyText(target)}`, `Model ID  ${target.model}`].join("\n"),
      note: target.context ? `Under Model Configuration, set the context window to ${target.context}.` : undefined },
      { title: "In a terminal", text: `cline auth -p openai-compatible -k ${shellWord(keyText(target))} -m ${shellWord(target.model)} ` +
        `-b ${shellWord(openAiBase(target))}` },
    ],
  },
  {
    id: "continue", name: "Continue", what: "a coding agent in editors and the terminal", probe: "chat_tools", isAgent: true,
    source: "docs.continue.dev: config.yaml reference; OpenAI, API compatible providers",
    snippets: (target) => [{ title: "~/.continue/config.yaml", text: continueYaml(target) }],
  },
  {
    id: "zed", name: "Zed", what: "an editor with an agent", probe: "ollama", isAgent: true,
    source: "zed.dev/docs: Use a Local Model, Ollama",
    snippets: (target) => [{
      title: "settings.json (command \"zed: open settings\")", text: zedJson(target),
      note: hasKey(target)
        ? `Give Zed the key in its provider settings, or start it with ${exported("OLLAMA_API_KEY", keyText(target))}`
        : "Zed uses Ollama's API and takes 4,096 positions unless max_tokens says more.",
    }],
  },
  {
    id: "xcode", name: "Xcode", what: "Apple's development environment", probe: "chat_tools", isAgent: true,
    source: "developer.apple.com: Setting up coding intelligence",
    snippets: (target) => [{
      title: "Settings, Intelligence, Add a Chat Provider (Add a Model Provider in Xcode 26.0)", text: isLoopback(target.origin)
        ? [`Locally Hosted`, `Port         ${new URL(target.origin).port || "80"}`, "Description  lockstep"].join("\n")
        : ["Internet Hosted", `URL             ${target.origin}`, `API Key         ${keyText(target)}`, "API Key Header  x-api-key",
          "Description     lockstep"].join("\n"),
      note: "Xcode adds /v1/models and /v1/chat/completions itself." + (isLoopback(target.origin) && target.keysNeeded
        ? " Locally Hosted has no field for a key, and this node wants one: use Internet Hosted with this address." : ""),
    }],
  },
  {
    id: "qwen-code", name: "Qwen Code", what: "a coding agent in the terminal", probe: "chat_tools", isAgent: true, firstRequest: 20_000,
    source: "qwenlm.github.io/qwen-code-docs: Authentication; Model Providers",
    snippets: (target) => [
      { title: "In a terminal", text: [exported("OPENAI_API_KEY", keyText(target)), exported("OPENAI_BASE_URL", openAiBase(target)),
        exported("OPENAI_MODEL", target.model), "qwen"].join("\n") },
      { title: "Or ~/.qwen/settings.json", text: qwenJson(target),
        note: `It reads the key from a variable: ${exported("LOCKSTEP_API_KEY", keyText(target))}` },
    ],
  },
  {
    id: "ollama", name: "Ollama clients", what: "Copilot in VS Code, Home Assistant and others", probe: "ollama", isAgent: false,
    source: "docs.ollama.com: API; FAQ, OLLAMA_HOST",
    snippets: (target) => [
      { title: "The address, where the client asks for it", text: target.origin,
        note: "Clients that cannot be told another port expect 11434: lockstep serve --port 11434" },
      { title: "Ollama's own program", text: `OLLAMA_HOST=${shellWord(target.origin)} ollama run ${shellWord(target.model)}` },
    ],
  },
  {
    id: "curl", name: "curl", what: "the terminal", probe: "chat", isAgent: false, source: "docs/http-api.md",
    snippets: (target) => [{ title: "In a terminal", text: [
      `curl -N ${shellWord(`${openAiBase(target)}/chat/completions`)} \\`,
      ...(hasKey(target) ? [`  -H ${shellWord(`Authorization: Bearer ${keyText(target)}`)} \\`] : []),
      `  -d ${shellWord(JSON.stringify({ model: target.model, messages: [{ role: "user", content: "Say hello." }], stream: true }))}`,
    ].join("\n") }],
  },
  {
    id: "python", name: "Python", what: "OpenAI's SDK", probe: "chat", isAgent: false, source: "github.com/openai/openai-python: README",
    snippets: (target) => [{ title: "pip install openai", text: [
      "from openai import OpenAI", "", `client = OpenAI(base_url=${quoted(openAiBase(target))}, api_key=${quoted(keyText(target))})`,
      "stream = client.chat.completions.create(", `    model=${quoted(target.model)}, stream=True,`,
      '    messages=[{"role": "user", "content": "Say hello."}])', "for chunk in stream:", "    for choice in chunk.choices:",
      '        print(choice.delta.content or "", end="", flush=True)'].join("\n") }],
  },
  {
    id: "javascript", name: "JavaScript", what: "OpenAI's SDK", probe: "chat", isAgent: false,
    source: "github.com/openai/openai-node: README",
    snippets: (target) => [{ title: "npm install openai", text: [
      'import OpenAI from "openai";', "",
      `const client = new OpenAI({ baseURL: ${quoted(openAiBase(target))}, apiKey: ${quoted(keyText(target))} });`,
      "const stream = await client.chat.completions.create({", `  model: ${quoted(target.model)}, stream: true,`,
      '  messages: [{ role: "user", content: "Say hello." }],', "});",
      'for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");'].join("\n") }],
  },
];

function launched(name: string, target: Target): Snippet {
  const flags = [...addressFlags(target.origin), "--model", shellWord(target.model)];
  const key = hasKey(target) ? `LOCKSTEP_API_KEY=${shellWord(keyText(target))} ` : "";
  return { title: "Or without a file, where lockstep is installed", text: `${key}lockstep launch ${name} ${flags.join(" ")}` };
}

function addressFlags(origin: string): string[] {
  const { hostname, port } = new URL(origin);
  return [...(hostname === "localhost" ? [] : ["--host", shellWord(hostname)]), ...(port === "8600" ? [] : ["--port", port || "80"])];
}
