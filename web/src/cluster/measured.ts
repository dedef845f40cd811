// The last measured speed of a model, shown next to the prediction.
import type { Meters } from "./types";

const SECONDS = 10;

interface Measured { tokS: number; answers: number; agoS: number }

// The mean of the last seconds in which the model made tokens for this node's clients; `history` has one entry a second, the newest last.
export function measuredOf(history: Meters[], model: string): Measured | undefined {
  const last = history.findLastIndex((meters) => busy(meters, model) !== undefined);
  if (last < 0) return undefined;
  let [tokens, answers, seconds] = [0, 0, 0];
  for (let at = last; at >= 0 && seconds < SECONDS; --at) {
    const found = busy(history[at]!, model);
    if (!found) break;
    tokens += found.tokens_s!;
    answers = Math.max(answers, found.running);
    seconds += 1;
  }
  return { tokS: tokens / seconds, answers: Math.max(1, answers), agoS: (history.at(-1)!.now_ms - history[last]!.now_ms) / 1000 };
}

// Without an answer in progress a rate belongs to one that has just ended in part of a second, and would be too small.
function busy(meters: Meters, model: string) {
  return meters.models?.find((other) => other.name === model && (other.tokens_s ?? 0) > 0 && other.running > 0);
}
