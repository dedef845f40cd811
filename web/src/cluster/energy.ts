// The energy of an answer: the power of whole machines over its time. Other work of these machines in that time counts too.
import { sumOfKnown } from "../lib/sum";
import type { Meters, ModelStatus } from "./types";

const READING_MS = 5_000; // a reading stands for the time before it, at most so long; readings come once a second
const LEAST_MS = 1_000; // a reading is the mean of a second or more, so it says nothing about a shorter time

// Joules of `nodes` from `fromMs` to `toMs`, times as in Meters.now_ms, which `history` is sorted by. undefined if the power of one of
// them is not known for all of that time.
export function joulesOf(history: readonly Meters[], nodes: readonly string[], fromMs: number, toMs: number): number | undefined {
  if (nodes.length === 0 || toMs - fromMs < LEAST_MS) return undefined;
  let joules = 0;
  let watts: number | undefined;
  let countedMs = fromMs;
  for (const meters of history.slice(history.findLastIndex((one) => one.now_ms <= fromMs) + 1)) {
    watts = wattsOf(meters, nodes);
    if (watts === undefined || meters.now_ms - countedMs > READING_MS) return undefined;
    joules += (watts * (Math.min(meters.now_ms, toMs) - countedMs)) / 1000;
    countedMs = Math.min(meters.now_ms, toMs);
    if (countedMs === toMs) return joules;
  }
  // The end has no reading yet: the last one stands for it.
  return watts === undefined || toMs - countedMs > READING_MS ? undefined : joules + (watts * (toMs - countedMs)) / 1000;
}

function wattsOf(meters: Meters, nodes: readonly string[]): number | undefined {
  const powers = nodes.map((id) => meters.nodes.find(({ node }) => node === id)?.power_w ?? undefined);
  return powers.includes(undefined) ? undefined : sumOfKnown(powers);
}

// The machines that compute an answer of the model; none if they are not known: of several groups any may have it.
export function nodesOf(model: ModelStatus | undefined, self: string | undefined): string[] {
  if (!model || (model.groups?.length ?? 1) > 1) return [];
  const nodes = (model.ranks ?? []).map(({ node }) => node ?? self);
  return nodes.includes(undefined) ? [] : [...new Set(nodes as string[])];
}
