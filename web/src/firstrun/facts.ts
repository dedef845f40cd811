// Sentences of the first-run card, from what the node says of itself.
import { kindOf } from "../cluster/lines";
import type { LinkStatus, ModelStatus, NodeStatus } from "../cluster/types";
import { microseconds } from "../lib/format";

const SLOWED_US = 500; // no link between processes of one machine takes as long by itself

const SMALL_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"];
export const numberWord = (value: number): string => SMALL_NUMBERS[value] ?? String(value);
const capital = (text: string): string => text[0].toUpperCase() + text.slice(1);

// "260 thousand", "1.2 billion"
export function parameterWords(parameters: number): string {
  const units: [number, string][] = [[1e9, "billion"], [1e6, "million"], [1e3, "thousand"]];
  const [size, word] = units.find(([least]) => parameters >= least) ?? [1, ""];
  const value = parameters / size;
  return `${value >= 10 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${word}`.trim();
}

export function introduction(model: ModelStatus, parameters: number | undefined): string {
  const ranks = model.ranks ?? [];
  const machines = new Set(ranks.map((rank) => rank.node)).size;
  const many = ranks.length === 1 ? "One process" : `${capital(numberWord(ranks.length))} processes`;
  const where = machines > 1 ? `on ${numberWord(machines)} machines` : "on this machine";
  const sharing = ranks.length === 1 ? "holds the whole model" : "share one model";
  const size = parameters ? ` It has ${parameterWords(parameters)} parameters` : "";
  const stories = /stories/i.test(model.name) ? `${size ? " and" : " It"} knows children's stories` : "";
  return `${many} ${where} ${sharing}.${size}${stories}${size || stories ? "." : ""}`;
}

export interface Machine { rank: number; name: string; pid?: number; layers: string }

export function machinesOf(model: ModelStatus, nodes: NodeStatus[]): Machine[] {
  return (model.ranks ?? []).map(({ rank, node, pid, layers, share }) => ({
    rank, pid, name: nodes.find((other) => other.id === node)?.name ?? "this machine",
    layers: layers ? `layers ${layers[0]} to ${layers[1]}` : share ? "a share" : "",
  }));
}

export const linkBetween = (model: ModelStatus, a: number, b: number): LinkStatus | undefined =>
  model.links?.find((link) => (link.a === a && link.b === b) || (link.a === b && link.b === a));

// Its kind and its latency.
export const linkWords = (link: LinkStatus | undefined): string[] => (link ? [kindOf(link), microseconds(link.p50_us)] : []);

// Said whenever the delay cannot be the link's own.
export function slowedSentence(model: ModelStatus): string {
  const link = model.links?.find(({ path, p50_us }) => path === "shm" && p50_us >= SLOWED_US);
  return link ? `It is slowed on purpose: each message between them takes ${microseconds(link.p50_us)} instead of a few µs, ` +
    "so that an eye can follow. Without that the story is there at once." : "";
}
