// Requests to the node, built from a branch of a conversation and its settings.
import { faultsOf, SAMPLING_FIELDS, type Settings } from "./settings";
import type { Message } from "./types";

export type Texts = ReadonlyMap<string, string>; // of attachments, by their id

export interface AnswerRequest { path: "/v1/chat/completions" | "/v1/completions"; body: Record<string, unknown> }

interface ChatMessage {
  role: "system" | "user" | "assistant" | "tool"; content: string | null; reasoning_content?: string; tool_call_id?: string;
  tool_calls?: { id: string; type: "function"; function: { name: string; arguments: string } }[];
}

// A file as part of a text. Its fence is longer than any fence inside.
function folded(name: string, text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  return `${name}:\n${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}\n\n`;
}

// The text of a message as the model reads it: its files, then what was typed. A file that is gone is said to be gone.
export function textOf(message: Message, texts: Texts): string {
  const files = (message.attachments ?? []).map(({ id, name }) => folded(name, texts.get(id) ?? "(this file is no longer kept)"));
  return files.join("") + message.text;
}

export function chatMessages(path: readonly Message[], system: string, texts: Texts): ChatMessage[] {
  const messages: ChatMessage[] = system.trim() === "" ? [] : [{ role: "system", content: system }];
  for (const message of path) {
    if (message.role === "user") {
      messages.push({ role: "user", content: textOf(message, texts) });
      continue;
    }
    const calls = message.calls ?? [];
    if (message.text === "" && calls.length === 0) continue; // An answer that failed says nothing.
    messages.push({
      role: "assistant", content: message.text === "" && calls.length > 0 ? null : message.text,
      ...(message.reasoning ? { reasoning_content: message.reasoning } : {}),
      ...(calls.length > 0 ? { tool_calls: calls.map((call) => ({ id: call.id, type: "function" as const,
        function: { name: call.name, arguments: call.arguments } })) } : {}),
    });
    for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: call.result ?? "" });
  }
  return messages;
}

// For a model without a template: all texts one after the other. An answer continues its question directly, and a question
// begins a new line, unless it begins with a space of its own.
export function promptOf(path: readonly Message[], system: string, texts: Texts): string {
  let prompt = system.trim() === "" ? "" : `${system}\n`;
  path.forEach((message, at) => {
    const text = textOf(message, texts);
    if (message.role === "user" && at > 0 && !/^\s/.test(text) && !/\s$/.test(prompt)) prompt += "\n";
    prompt += text;
  });
  return prompt;
}

// The fields that do not depend on the messages. Throws Error with a sentence for settings that are not JSON.
export function fieldsOf(settings: Settings, isChat: boolean): Record<string, unknown> {
  const fault = Object.entries(faultsOf(settings))[0];
  if (fault) throw new Error(`In the settings, ${fault[0]}: ${fault[1]}`);
  const fields: Record<string, unknown> = {};
  for (const { name } of SAMPLING_FIELDS) if (settings.sampling[name] !== undefined) fields[name] = settings.sampling[name];
  const read = (text: string): unknown => (text.trim() === "" ? undefined : JSON.parse(text));
  const put = (name: string, value: unknown): void => { if (value !== undefined) fields[name] = value; };
  if (fields.top_logprobs !== undefined) {
    if (isChat) fields.logprobs = true;
    else fields.logprobs = fields.top_logprobs;
    if (!isChat) delete fields.top_logprobs;
  }
  if (settings.stop.length > 0) fields.stop = settings.stop;
  put("logit_bias", read(settings.logit_bias));
  put("dry_sequence_breakers", read(settings.dry_sequence_breakers));
  if (isChat) putChatFields(settings, read, put);
  return { ...fields, ...(read(settings.other) as Record<string, unknown> | undefined) };
}

function putChatFields(settings: Settings, read: (text: string) => unknown, put: (name: string, value: unknown) => void): void {
  const tools = read(settings.tools) as Record<string, unknown>[] | undefined;
  if (tools && tools.length > 0) {
    put("tools", tools.map((tool) => ("function" in tool ? tool : { type: "function", function: tool })));
    put("tool_choice", settings.tool_choice);
  }
  const schema = read(settings.schema);
  if (schema !== undefined) put("response_format", { type: "json_schema", json_schema: { name: "answer", schema } });
  if (schema === undefined && settings.grammar.trim() !== "") put("grammar", settings.grammar);
  put("chat_template_kwargs", read(settings.template));
  if (settings.effort !== "") put("reasoning_effort", settings.effort);
}

const STREAM_OPTIONS = { include_usage: true, include_timings: true, include_progress: true, include_events: true,
  include_receipt: true };

const COMPLETION_TOKENS = 1 << 24; // More than any context: without it the node ends a completion after 16 tokens.

// An answer's fields are complete before it is asked for, so that a receipt can be checked with the very same ones.
export function answerBody(model: string, settings: Settings, isChat: boolean, seed?: number): Record<string, unknown> {
  const fields = fieldsOf(settings, isChat);
  if (seed !== undefined && fields.seed === undefined) fields.seed = seed;
  if (!isChat) fields.max_tokens ??= COMPLETION_TOKENS;
  return { model, ...fields, stream: true, stream_options: STREAM_OPTIONS };
}

// `continued` is the answer that is to go on; its text is then the last one of the conversation.
export function answerRequest(body: Record<string, unknown>, isChat: boolean, path: readonly Message[], system: string, texts: Texts,
    continued?: Message): AnswerRequest {
  const whole = continued ? [...path, continued] : path;
  if (!isChat) return { path: "/v1/completions", body: { ...body, prompt: promptOf(whole, system, texts) } };
  return { path: "/v1/chat/completions", body: { ...body, messages: chatMessages(whole, system, texts),
    ...(continued ? { continue_final_message: true, add_generation_prompt: false } : {}) } };
}

// The request of /v1/messages/count_tokens for the same conversation.
export function countBody(model: string, settings: Settings, path: readonly Message[], texts: Texts): Record<string, unknown> {
  const messages: { role: "user" | "assistant"; content: unknown }[] = [];
  for (const message of path) {
    if (message.role === "user") messages.push({ role: "user", content: textOf(message, texts) });
    if (message.role === "user" || (message.text === "" && !message.calls?.length)) continue;
    const calls = message.calls ?? [];
    const blocks = [...(message.text === "" ? [] : [{ type: "text", text: message.text }]),
      ...calls.map((call) => ({ type: "tool_use", id: call.id, name: call.name, input: inputOf(call.arguments) }))];
    messages.push({ role: "assistant", content: blocks });
    if (calls.length > 0) {
      messages.push({ role: "user", content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id,
        content: call.result ?? "" })) });
    }
  }
  const tools = settings.tools.trim() === "" || faultsOf(settings).tools ? [] : JSON.parse(settings.tools) as Record<string, any>[];
  const functions = tools.map((tool) => tool.function ?? tool).filter((tool) => typeof tool.name === "string");
  return { model, messages, ...(settings.system.trim() === "" ? {} : { system: settings.system }),
    ...(functions.length === 0 ? {} : { tools: functions.map(({ name, description, parameters }) => ({ name, description,
      input_schema: parameters ?? { type: "object" } })) }) };
}

function inputOf(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
