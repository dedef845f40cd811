// The events of a streamed answer, one after the other, into one message. Nothing is lost or doubled when a stream is read on from
// another connection: `next` is the number of the first event that has not been taken.
import type { TokenLogprob } from "../../answer/types";
import type { ServerEvent } from "../../lib/sse";
import type { Message } from "./types";

const TOKENS_KEPT = 8_192; // log-probabilities of an answer that are kept; later tokens have none
const ALTERNATIVES_KEPT = 20_000; // of all tokens together, so that storing an answer each second stays cheap
const TIMES_KEPT = 32_768;

export interface Progress { total: number; cached: number; processed: number; time_ms: number }

// State that matters only while the answer runs.
interface Moment {
  progress?: Progress; paused?: string; ended: boolean; error?: string; code?: string;
  computed_ms?: number; // from the moment the prompt's turn came to the last token
}

interface Chunk {
  choices?: { text?: string; delta?: Delta; logprobs?: Logprobs | null; finish_reason?: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens?: number } } | null;
  timings?: { prompt_n?: number; prompt_ms?: number; predicted_n?: number; predicted_ms?: number; predicted_per_second?: number;
    cache_n?: number };
  prompt_progress?: { total: number; cache?: number; processed: number; time_ms: number };
  lockstep?: { event?: StreamEvent; receipt?: string; answer_ids?: number[]; first_token_ms?: number; machines?: number; joules?: number };
  error?: { message?: string; code?: string | null } | string;
}
interface Delta { content?: string | null; reasoning_content?: string | null; tool_calls?: CallDelta[] }
interface CallDelta { index?: number; id?: string; function?: { name?: string; arguments?: string } }
interface StreamEvent { kind: string; reason?: string; after_s?: number; recomputed_tokens?: number }
interface ChatToken { token: string; logprob: number; top_logprobs?: { token: string; logprob: number }[] }
interface Logprobs {
  content?: ChatToken[] | null; // of a chat completion
  tokens?: string[]; token_logprobs?: (number | null)[]; top_logprobs?: (Record<string, number> | null)[] | null; // of a completion
}

export class AnswerReducer {
  readonly moment: Moment = { ended: false };
  // Events that brought text, for the rate while it runs.
  pieces = 0;
  private alternatives = 0;

  // `message` is changed in place. `began` is when the request began, on the clock of `take`.
  constructor(readonly message: Message, private readonly began: number) {}

  take(event: ServerEvent, now: number): void {
    const number = Number(event.id);
    if (event.id !== "" && this.message.stream) {
      if (number < this.message.stream.next) return;
      this.message.stream = { ...this.message.stream, next: number + 1 };
    }
    if (event.data === "[DONE]") this.moment.ended = true;
    else this.takeChunk(JSON.parse(event.data) as Chunk, now);
  }

  private takeChunk(chunk: Chunk, now: number): void {
    if (chunk.error) return this.takeError(chunk.error);
    for (const choice of chunk.choices ?? []) {
      this.takeText(choice.text ?? choice.delta?.content ?? "", choice.delta?.reasoning_content ?? "", now);
      for (const call of choice.delta?.tool_calls ?? []) this.takeCall(call, now);
      if (choice.logprobs) this.takeLogprobs(choice.logprobs);
      if (choice.finish_reason) this.message.finish = choice.finish_reason;
    }
    const { prompt_progress: progress } = chunk;
    if (progress) {
      this.moment.progress = { total: progress.total, cached: progress.cache ?? 0, processed: progress.processed,
        time_ms: progress.time_ms };
    }
    if (chunk.lockstep?.event) this.takeSeam(chunk.lockstep.event);
    if (chunk.lockstep?.receipt) this.message.receipt = { text: chunk.lockstep.receipt, answer_ids: chunk.lockstep.answer_ids };
    this.takeFigures(chunk);
  }

  private takeError(error: NonNullable<Chunk["error"]>): void {
    this.moment.error = typeof error === "string" ? error : error.message ?? "The node ended the answer with an error.";
    this.moment.code = typeof error === "string" ? "" : error.code ?? "";
    this.moment.ended = true;
  }

  private takeText(text: string, reasoning: string, now: number): void {
    if (text === "" && reasoning === "") return;
    this.takePiece(now);
    const { message } = this;
    if (reasoning !== "") {
      message.reasoning = (message.reasoning ?? "") + reasoning;
      message.reasoning_s = (now - this.began) / 1000 - (message.figures?.first_s ?? 0);
    }
    message.text += text;
  }

  private takePiece(now: number): void {
    this.moment.progress = undefined;
    this.moment.paused = undefined;
    this.pieces += 1;
    const { message } = this;
    message.figures ??= {};
    message.figures.first_s ??= (now - this.began) / 1000;
    message.times_ms ??= [];
    if (message.times_ms.length < TIMES_KEPT) message.times_ms.push(Math.round((now - this.began) * 10) / 10);
  }

  private takeCall({ index, id, function: called }: CallDelta, now: number): void {
    this.takePiece(now);
    const calls = (this.message.calls ??= []);
    const at = index ?? calls.length;
    while (calls.length <= at) calls.push({ id: "", name: "", arguments: "" });
    calls[at] = { ...calls[at], id: id ?? calls[at].id, name: called?.name ?? calls[at].name,
      arguments: calls[at].arguments + (called?.arguments ?? "") };
  }

  private takeLogprobs(logprobs: Logprobs): void {
    const tokens = (this.message.tokens ??= []);
    for (const token of listOf(logprobs)) {
      if (tokens.length >= TOKENS_KEPT) return;
      this.alternatives += token.top.length;
      tokens.push(this.alternatives <= ALTERNATIVES_KEPT ? token : { ...token, top: [] });
    }
  }

  private takeSeam(event: StreamEvent): void {
    const { seams = [] } = this.message;
    if (event.kind === "pause") this.moment.paused = withoutEnd(event.reason) || "a machine was lost";
    const last = seams.at(-1);
    if (event.kind === "node" && last?.at === this.message.text.length && event.reason) {
      this.message.seams = [...seams.slice(0, -1), { ...last, label: `${last.label}; ${withoutEnd(event.reason)}` }];
    }
    if (event.kind !== "resume") return;
    const parts = [withoutEnd(event.reason) || this.moment.paused || "a machine was lost",
      ...(event.after_s === undefined ? [] : [`${event.after_s.toFixed(1)} s`]),
      ...(event.recomputed_tokens === undefined ? [] : [`${event.recomputed_tokens} tokens computed again`]), "text unchanged"];
    this.moment.paused = undefined;
    this.message.seams = [...seams, { at: this.message.text.length, label: parts.join(", ") }];
  }

  private takeFigures({ usage, timings, lockstep }: Chunk): void {
    if (usage) {
      const cached = usage.prompt_tokens_details?.cached_tokens;
      this.message.usage = { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens, cached_tokens: cached };
    }
    if (!usage && !timings && lockstep?.machines === undefined && lockstep?.first_token_ms === undefined) return;
    const known = this.message.usage;
    this.message.figures = defined({
      ...this.message.figures,
      tokens: timings?.predicted_n ?? known?.completion_tokens,
      tokens_s: timings?.predicted_per_second,
      prompt_cached: timings?.cache_n ?? known?.cached_tokens,
      prompt_new: timings?.prompt_n ?? (known ? known.prompt_tokens - (known.cached_tokens ?? 0) : undefined),
      prompt_s: timings?.prompt_ms === undefined ? undefined : timings.prompt_ms / 1000,
      first_s: lockstep?.first_token_ms === undefined ? this.message.figures?.first_s : lockstep.first_token_ms / 1000,
      machines: lockstep?.machines ?? this.message.figures?.machines,
      joules: lockstep?.joules ?? this.message.figures?.joules,
    });
    this.message.figures.tokens_s ??= this.measured();
    if (timings?.prompt_ms !== undefined) this.moment.computed_ms = timings.prompt_ms + (timings.predicted_ms ?? 0);
  }

  // Tokens a second by the page's own clock, without the first token; for nodes that give no rate.
  private measured(): number | undefined {
    const times = this.message.times_ms ?? [];
    const took = times.length < 2 ? 0 : times[times.length - 1] - times[0];
    return took <= 0 ? undefined : ((this.message.usage?.completion_tokens ?? times.length) - 1) * 1000 / took;
  }
}

function listOf(logprobs: Logprobs): TokenLogprob[] {
  if (logprobs.content) {
    return logprobs.content.map(({ token, logprob, top_logprobs: top }) => ({ token, logprob,
      top: (top ?? []).map((one) => ({ token: one.token, logprob: one.logprob })) }));
  }
  return (logprobs.tokens ?? []).map((token, at) => ({ token, logprob: logprobs.token_logprobs?.[at] ?? 0,
    top: Object.entries(logprobs.top_logprobs?.[at] ?? {}).map(([token, logprob]) => ({ token, logprob })) }));
}

const withoutEnd = (sentence = ""): string => sentence.replace(/\.$/, "");

function defined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as T;
}
