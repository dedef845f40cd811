// The cost of a message before it is sent: how much of its prompt the node has computed already, and how long the rest will take, by what
// earlier answers of the model said. Other requests may have taken the cached part's place, so both are estimates.
import { count, figure } from "../../lib/format";
import { sumOfKnown } from "../../lib/sum";
import type { Message } from "./types";

const PAGE = 64; // tokens: the node keeps whole pages only (docs/internals/state.md), and always computes the last token
const ANSWERS_MAX = 4; // the last ones, for the speed

// Tokens, and seconds until the first token of the answer. Absent: nothing was measured yet.
export interface Cost { fresh?: number; cached?: number; seconds?: number; tokens: number }

// Fields of a request that stand in the prompt besides the messages.
const HEAD = ["tools", "tool_choice", "chat_template_kwargs", "reasoning_effort"];
const headOf = (body: Record<string, unknown>): string => JSON.stringify(HEAD.map((name) => body[name]));

// `path` is the branch before the message, `tokens` the length of the whole prompt, `body` and `system` those that it will be sent with.
// `finished` are answers whose speed counts, the newest last.
export function costOf(tokens: number, model: string, body: Record<string, unknown>, system: string, path: readonly Message[],
    finished: readonly Message[]): Cost {
  const known = path.findLast((message) => message.model === model && message.usage !== undefined);
  const isSameHead = known !== undefined && (known.system ?? "") === system && headOf(known.body ?? {}) === headOf(body);
  const cached = known && (isSameHead ? pagesOf(Math.min(tokens, prefixOf(known))) : 0);
  const fresh = tokens - (cached ?? 0);
  const speed = speedOf(finished.filter((message) => message.model === model));
  return { tokens, cached, fresh: known && fresh, seconds: speed && fresh / speed };
}

const pagesOf = (tokens: number): number => Math.floor(Math.max(0, tokens - 1) / PAGE) * PAGE;

// Tokens that an answer left in the cache and the next prompt begins with. Templates leave reasoning out of later prompts, so there the
// prompt ends at the answer; so it does if the answer's text was edited.
function prefixOf({ usage, reasoning, edited }: Message): number {
  return usage!.prompt_tokens + (reasoning || edited ? 0 : usage!.completion_tokens);
}

// Tokens a second from the prompt's turn to the first token, over the last answers.
function speedOf(finished: readonly Message[]): number | undefined {
  const measured = finished.filter(({ figures }) => figures?.prompt_new && figures.prompt_s).slice(-ANSWERS_MAX);
  const tokens = sumOfKnown(measured.map(({ figures }) => figures!.prompt_new));
  return tokens && tokens / sumOfKnown(measured.map(({ figures }) => figures!.prompt_s))!;
}

// For the line next to the gauge: "34 new + 812 cached, 0.4 s".
export function costLine({ tokens, fresh, cached, seconds }: Cost): string {
  const parts = fresh === undefined ? `${count(tokens)} to read` : `${count(fresh)} new + ${count(cached)} cached`;
  return `${parts}, ${seconds === undefined ? "time unknown" : `${figure(seconds)} s`}`;
}

export function costSentence({ tokens, fresh, cached, seconds }: Cost): string {
  const parts = fresh === undefined ? `About ${count(tokens)} tokens are to be read; how many of them are cached is not known.`
    : `About ${count(fresh)} tokens are new, and ${count(cached)} cached since the last answer.`;
  return `${parts} ${seconds === undefined ? "How long that takes is not known before this model has answered once."
    : `At the speed of the last answers the first token comes after ${figure(seconds)} s.`}`;
}
