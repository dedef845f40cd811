// One story: a greedy completion, token by token, so that two tellings can be compared.
import { ApiError, within } from "../lib/api";
import { streamEvents } from "../lib/event_stream";

const STORY_TOKENS = 200;
const SEED = 1; // greedy answers do not use it; it is part of the request that is made twice
const STORY_MS = 120_000;

export interface Told { tokens: string[]; text: string }

export interface Seam { reason: string; afterSeconds?: number; recomputed?: number } // where a worker was lost

export interface Listener {
  token(token: string): void;
  pause(): void;
  resume(seam: Seam): void;
}

// Throws ApiError, also if the stream ends before the story does; AbortError once `signal` is aborted.
export async function tell(model: string, prompt: string, listener: Listener, signal: AbortSignal): Promise<Told> {
  const tokens: string[] = [];
  let isWhole = false;
  const take = (chunk: any): void => {
    const { error } = chunk;
    if (error) throw new ApiError(200, String(error.code ?? ""), String(error.message ?? "The stream ended with an error."));
    const event = chunk.lockstep?.event;
    if (event?.kind === "pause") listener.pause();
    if (event?.kind === "resume") {
      listener.resume({ reason: String(event.reason ?? ""), afterSeconds: event.after_s, recomputed: event.recomputed_tokens });
    }
    const choice = chunk.choices?.[0];
    for (const token of choice?.logprobs?.tokens ?? (choice?.text ? [choice.text] : [])) {
      tokens.push(token);
      listener.token(token);
    }
    if (choice?.finish_reason) isWhole = true;
  };
  const body = { model, prompt, max_tokens: STORY_TOKENS, temperature: 0, seed: SEED, stream: true, logprobs: 0,
    stream_options: { include_events: true } };
  await within(STORY_MS, signal, `The story was not complete after ${STORY_MS / 1000} s.`, (ended) =>
    streamEvents("POST", "/v1/completions", body, ended, ({ data }) => { if (data !== "[DONE]") take(JSON.parse(data)); }));
  if (!isWhole) throw new ApiError(0, "cut", "The stream ended in the middle of the story.");
  return { tokens, text: tokens.join("") };
}

export interface Difference { token: number; character: number } // counted from 0

// Where two tellings part; undefined if they are the same, token by token.
export function firstDifference(a: Told, b: Told): Difference | undefined {
  let token = 0;
  while (token < a.tokens.length && a.tokens[token] === b.tokens[token]) token += 1;
  if (token === a.tokens.length && token === b.tokens.length && a.text === b.text) return undefined;
  let character = 0;
  while (character < a.text.length && a.text[character] === b.text[character]) character += 1;
  return { token, character };
}

// Tokens of `b` that are not those of `a`, those that one has more included.
export function wrongTokens(a: Told, b: Told): number {
  const length = Math.max(a.tokens.length, b.tokens.length);
  let wrong = 0;
  for (let at = 0; at < length; ++at) wrong += a.tokens[at] === b.tokens[at] ? 0 : 1;
  return wrong;
}
