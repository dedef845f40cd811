// Requests in progress, and what this page saw of each: when it changed its phase, and how fast its tokens came.

export interface RequestInfo {
  id: string; model: string; phase: "waiting" | "prompt" | "answer" | "paused"; place?: number; prompt_tokens?: number;
    prompt_done?: number;
  tokens?: number; age_s?: number; node?: string; client?: string; route?: string; own?: boolean;
}
interface Span { phase: string; fromMs: number; toMs: number }
export interface Trace {
  request: RequestInfo; spans: Span[]; isEnded: boolean;
  arrivedMs: number; firstMs?: number; // when it was first seen with a token
  counts: { atMs: number; tokens: number }[]; // of the last seconds
}

export const TRACES_KEPT = 50;
const COUNTED_MS = 10_000;

// `nowMs` is this page's clock; each look may be late by the time between two looks.
export function tracesAfter(before: Trace[], requests: RequestInfo[], nowMs: number): Trace[] {
  const after = before.map((trace) => {
    const request = requests.find((other) => other.id === trace.request.id);
    return request ? seen(trace, request, nowMs) : { ...trace, isEnded: true };
  });
  for (const request of requests) {
    if (!after.some((trace) => trace.request.id === request.id)) after.push(begun(request, nowMs));
  }
  const ended = after.filter((trace) => trace.isEnded);
  const left = new Set(ended.slice(0, Math.max(0, after.length - TRACES_KEPT)));
  return after.filter((trace) => !left.has(trace));
}

function begun(request: RequestInfo, nowMs: number): Trace {
  const arrivedMs = nowMs - 1000 * (request.age_s ?? 0);
  return { request, isEnded: false, arrivedMs, firstMs: (request.tokens ?? 0) > 0 ? nowMs : undefined,
    spans: [{ phase: request.phase, fromMs: arrivedMs, toMs: nowMs }], counts: [{ atMs: nowMs, tokens: request.tokens ?? 0 }] };
}

function seen(trace: Trace, request: RequestInfo, nowMs: number): Trace {
  const last = trace.spans.at(-1)!;
  const grown = { ...last, toMs: nowMs };
  const spans = [...trace.spans.slice(0, -1), grown];
  if (last.phase !== request.phase) spans.push({ phase: request.phase, fromMs: nowMs, toMs: nowMs });
  const counts = [...trace.counts, { atMs: nowMs, tokens: request.tokens ?? 0 }].filter(({ atMs }) => nowMs - atMs <= COUNTED_MS);
  return { ...trace, request, spans, counts, isEnded: false, firstMs: trace.firstMs ?? ((request.tokens ?? 0) > 0 ? nowMs : undefined) };
}

// Tokens a second over the last seconds in which it was seen; undefined before two looks.
export function rateOf({ counts }: Trace): number | undefined {
  const [first, last] = [counts[0], counts.at(-1)];
  if (!first || !last || last.atMs <= first.atMs) return undefined;
  return (1000 * (last.tokens - first.tokens)) / (last.atMs - first.atMs);
}

export function phaseText({ phase, place, prompt_done: done, prompt_tokens: whole }: RequestInfo): string {
  if (phase === "waiting") return place ? `waits, place ${place}` : "waits";
  if (phase === "prompt") return done !== undefined && whole ? `reads ${done} of ${whole}` : "reads the prompt";
  return phase === "paused" ? "paused: its machines are formed again" : "answers";
}
