// Curves of the last hour from the meters, which come once a second: values in columns of equal time, each the mean of what was measured.
import type { Meters } from "../cluster/types";
import { sumOfKnown } from "../lib/sum";

const HOUR_MS = 3_600_000;

export interface Curve { name: string; hue: string; values: (number | undefined)[] }
export type Reading = (meters: Meters) => number | undefined;

// `columns` steps that end now; a step without a measurement is undefined, so that a gap stays a gap.
export function columnsOf(history: Meters[], reading: Reading, columns: number, spanMs: number, nowMs: number): (number | undefined)[] {
  const sums = Array.from({ length: columns }, () => ({ sum: 0, many: 0 }));
  const step = spanMs / columns;
  for (const meters of history) {
    const at = Math.floor((meters.now_ms - (nowMs - spanMs)) / step);
    const value = reading(meters);
    const column = sums[Math.min(at, columns - 1)];
    if (at < 0 || value === undefined || !column || meters.now_ms > nowMs) continue;
    column.sum += value;
    column.many += 1;
  }
  return sums.map(({ sum, many }) => (many === 0 ? undefined : sum / many));
}

export const tokens: Reading = (meters) => sumOfKnown(meters.models?.map((model) => model.tokens_s));
export const promptTokens: Reading = (meters) => sumOfKnown(meters.models?.map((model) => model.prompt_tokens_s));
export const running: Reading = (meters) => sumOfKnown(meters.models?.map((model) => model.running));
export const waiting: Reading = (meters) => sumOfKnown(meters.models?.map((model) => model.waiting));
export const power: Reading = (meters) => sumOfKnown(meters.nodes?.map((node) => node.power_w));

// Joules a token: the power of all machines that tell it, while tokens are generated.
export const joules: Reading = (meters) => {
  const [watts, rate] = [power(meters), tokens(meters)];
  return watts === undefined || !rate ? undefined : watts / rate;
};

// The span that is worth showing: as long as this page has measured, in steps that people know, at most an hour.
export function spanOf(history: Meters[], nowMs: number): number {
  const age = history.length === 0 ? 0 : nowMs - history[0]!.now_ms;
  return [60_000, 300_000, 900_000, 1_800_000].find((span) => age <= span) ?? HOUR_MS;
}

// The end of an axis: 1, 2 or 5 times a power of ten that holds every value; 1 at least for whole counts.
export function axisEnd(values: (number | undefined)[], least: number): number {
  const most = Math.max(least, ...values.map((value) => value ?? 0));
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((digit) => digit * power).find((end) => end >= most * 0.999)!;
}

// Pieces of a line, split where there is no value. x and y are in a box of `width` to `height`.
export function paths(values: (number | undefined)[], end: number, width: number, height: number): string[] {
  const pieces: string[] = [];
  const step = width / Math.max(1, values.length);
  let piece = "";
  values.forEach((value, at) => {
    if (value === undefined) {
      if (piece !== "") pieces.push(piece);
      piece = "";
      return;
    }
    const [x, y] = [(at + 0.5) * step, height - (Math.min(value, end) / end) * height];
    // A lone value is a short stroke, or it would not be seen.
    piece += piece === "" ? `M${(x - step / 2).toFixed(1)} ${y.toFixed(1)}L${(x + step / 2).toFixed(1)} ${y.toFixed(1)}` :
      `L${(x + step / 2).toFixed(1)} ${y.toFixed(1)}`;
  });
  if (piece !== "") pieces.push(piece);
  return pieces;
}
