// A client's own kind of first request, made by this page: it shows whether address, key and model work with what that client sends.
import { ApiError, ask, json, within } from "../lib/api";
import { readEvents } from "../lib/event_stream";
import type { ProbeKind } from "./clients";

export interface Probe {
  requests: string[]; // "POST /v1/messages", in their order
  text: string; // of the answer
  thought: string;
  calls: string[]; // tools that the model called, with arguments
  firstMs?: number; // until the first piece of the answer
  outputTokens?: number;
  ignored?: string; // fields of the request that the node does not have
}

export interface Refusal { sentence: string; advice: string }

const PROMPT = "Say hello in one short sentence.";
const TOKENS_MAX = 32;
const PROBE_MS = 120_000;
const WEATHER = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const WEATHER_WORDS = "The weather in a city";

export const PROBE_WORDS: Record<ProbeKind, string> = {
  chat: "lists the models and streams a chat completion",
  chat_tools: "lists the models and streams a chat completion that offers a tool",
  messages: "streams a message of Anthropic's API that offers a tool",
  responses: "streams a response of OpenAI's Responses API that offers a tool",
  ollama: "lists the models and streams a chat of Ollama's API",
};

// `show` gets the state after each piece. Throws ApiError, or AbortError once `signal` is aborted.
export function probe(kind: ProbeKind, model: string, key: string, signal: AbortSignal,
    show: (state: Probe) => void): Promise<Probe> {
  return within(PROBE_MS, signal, `The answer was not complete after ${PROBE_MS / 1000} s.`,
    (ended) => new Attempt(kind, model, key, ended, show).run());
}

class Attempt {
  private readonly started = performance.now();
  private readonly state: Probe = { requests: [], text: "", thought: "", calls: [] };
  private readonly openCalls = new Map<number, { name: string; text: string }>();

  constructor(private readonly kind: ProbeKind, private readonly model: string, private readonly key: string,
    private readonly signal: AbortSignal, private readonly show: (state: Probe) => void) {}

  async run(): Promise<Probe> {
    if (this.kind === "ollama") await this.list("/api/tags");
    if (this.kind === "chat" || this.kind === "chat_tools") await this.list("/v1/models");
    const messages = [{ role: "user", content: PROMPT }];
    const tool = { name: "get_weather", description: WEATHER_WORDS };
    const asFunction = { type: "function", function: { ...tool, parameters: WEATHER } };
    const common = { model: this.model, stream: true };
    switch (this.kind) {
      case "chat": case "chat_tools":
        await this.stream("/v1/chat/completions", { ...common, messages, max_tokens: TOKENS_MAX, stream_options: { include_usage: true },
          ...(this.kind === "chat_tools" ? { tools: [asFunction], tool_choice: "auto" } : {}) }, (data) => this.takeChat(data));
        break;
      case "messages":
        await this.stream("/v1/messages?beta=true", { ...common, messages, max_tokens: TOKENS_MAX,
          system: [{ type: "text", text: "You are a coding agent." }], tools: [{ ...tool, input_schema: WEATHER }] },
        (data) => this.takeMessage(data), { "anthropic-version": "2023-06-01" });
        break;
      case "responses":
        await this.stream("/v1/responses", { ...common, instructions: "You are a coding agent.", store: false,
          max_output_tokens: TOKENS_MAX, tool_choice: "auto",
          input: [{ type: "message", role: "user", content: [{ type: "input_text", text: PROMPT }] }],
          tools: [{ type: "function", strict: false, ...tool, parameters: WEATHER }] }, (data) => this.takeResponse(data));
        break;
      case "ollama":
        await this.lines("/api/chat", { ...common, messages, options: { num_predict: TOKENS_MAX } });
    }
    this.state.calls = [...this.openCalls.values()].map(({ name, text }) => `${name} ${text}`.trim());
    this.show({ ...this.state });
    return this.state;
  }

  private headers(): Record<string, string> {
    return this.key ? { authorization: `Bearer ${this.key}` } : {};
  }

  private async list(path: string): Promise<void> {
    this.begin(`GET ${path}`);
    await json("GET", path, undefined, { signal: this.signal, headers: this.headers() });
  }

  private begin(request: string): void {
    this.state.requests = [...this.state.requests, request];
    this.show({ ...this.state });
  }

  private async post(path: string, body: unknown, headers: Record<string, string>): Promise<Response> {
    this.begin(`POST ${path}`);
    const response = await ask("POST", path, body, { signal: this.signal, headers: { ...this.headers(), ...headers } });
    this.state.ignored = response.headers.get("x-lockstep-ignored-fields") ?? undefined;
    return response;
  }

  private async stream(path: string, body: unknown, take: (data: any) => void, headers: Record<string, string> = {}): Promise<void> {
    await readEvents(await this.post(path, body, headers), ({ data }) => {
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      const error = event.error ?? event.response?.error;
      if (error) throw new ApiError(200, String(error.code ?? error.type ?? ""), String(error.message ?? "The stream ended with an error"));
      take(event);
      this.show({ ...this.state });
    });
  }

  private async lines(path: string, body: unknown): Promise<void> {
    const response = await this.post(path, body, {});
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + (value ?? "")).split("\n");
      rest = done ? "" : lines.pop()!;
      for (const line of lines.filter((line) => line.trim() !== "")) this.takeOllama(JSON.parse(line));
      this.show({ ...this.state });
      if (done) return;
    }
  }

  private add(piece: string | null | undefined, field: "text" | "thought" = "text"): void {
    if (!piece) return;
    this.state.firstMs ??= performance.now() - this.started;
    this.state[field] += piece;
  }

  private addCall(index: number, name: string | undefined, piece: string | undefined): void {
    this.state.firstMs ??= performance.now() - this.started;
    const call = this.openCalls.get(index) ?? { name: "", text: "" };
    this.openCalls.set(index, { name: call.name + (name ?? ""), text: call.text + (piece ?? "") });
  }

  private takeChat(chunk: any): void {
    const choice = chunk.choices?.[0];
    this.add(choice?.delta?.content ?? choice?.text);
    this.add(choice?.delta?.reasoning_content, "thought");
    for (const call of choice?.delta?.tool_calls ?? []) this.addCall(call.index ?? 0, call.function?.name, call.function?.arguments);
    this.state.outputTokens = chunk.usage?.completion_tokens ?? this.state.outputTokens;
  }

  private takeMessage(event: any): void {
    const block = event.type === "content_block_start" ? event.content_block : undefined;
    if (block?.type === "tool_use") this.addCall(event.index, block.name, "");
    this.add(event.delta?.text);
    this.add(event.delta?.thinking, "thought");
    if (event.delta?.partial_json) this.addCall(event.index, undefined, event.delta.partial_json);
    this.state.outputTokens = event.usage?.output_tokens ?? this.state.outputTokens;
  }

  private takeResponse(event: any): void {
    if (event.type === "response.output_text.delta") this.add(event.delta);
    if (event.type === "response.reasoning_text.delta") this.add(event.delta, "thought");
    if (event.type === "response.output_item.done" && event.item?.type === "function_call") {
      this.addCall(event.output_index, event.item.name, event.item.arguments);
    }
    this.state.outputTokens = event.response?.usage?.output_tokens ?? this.state.outputTokens;
  }

  private takeOllama(line: any): void {
    if (line.error) throw new ApiError(200, "", String(line.error));
    this.add(line.message?.content);
    this.add(line.message?.thinking, "thought");
    for (const call of line.message?.tool_calls ?? []) {
      this.addCall(this.openCalls.size, call.function?.name, JSON.stringify(call.function?.arguments ?? {}));
    }
    this.state.outputTokens = line.eval_count ?? this.state.outputTokens;
  }
}

// The node's sentence, and the next step for the refusals that a new client meets.
export function refusalOf(error: unknown, model: string): Refusal {
  if (!(error instanceof ApiError)) return { sentence: error instanceof Error ? error.message : String(error), advice: "" };
  return { sentence: error.message, advice: adviceFor(error, model) };
}

function adviceFor({ status, code, message }: ApiError, model: string): string {
  if (status === 0) return "Look at the node's terminal or its log (lockstep logs): it has ended, or it is still reading the request.";
  if (status === 401) return "Put a key in the field above. lockstep key add NAME on the node's machine prints a new one.";
  if (code === "no_api_keys") return "Make a key on the node's machine with lockstep key add NAME; other machines need one.";
  if (code === "host_not_allowed") return "Start the node with --host-name and the name that you use for it, or use a key.";
  if (/chat template/.test(message)) {
    return `${model} is a base model: it continues texts and cannot call tools. Load one that was trained for chat, ` +
      "or use /v1/completions.";
  }
  if (code === "context_length_exceeded") return "Load the model with a larger context: lockstep load MODEL --context N.";
  if (status === 404) return "Choose a model that is loaded; the list above has those that the node serves now.";
  if (status === 429) return "The node is busy. Clients try again by themselves after the time that it names.";
  if (status === 503) return "The model is not ready yet. Its state is in Cluster.";
  return "";
}
