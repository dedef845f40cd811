// Lines of the picture: for each pair of machines the links of all models between their ranks. Links inside a machine stay apart.
import { sumOfKnown } from "../lib/sum";
import { hueOf } from "./hues";
import type { LinkStatus, Meters, ModelStatus, Status } from "./types";

export interface LinkFact {
  model: string; hue: string; a: number; b: number;
  link: LinkStatus | undefined; // undefined: ranks of a model that exchange, whose figures another node has
  p50Us?: number; bytesS?: number;
  isBusy: boolean; // bytes are known to flow, or the model makes tokens now
}
export interface Line { key: string; a: string; b: string; links: LinkFact[] }
interface Lines { between: Line[]; inside: Map<string, LinkFact[]> }

export function linesOf(status: Status | undefined, meters: Meters | undefined): Lines {
  const lines: Lines = { between: [], inside: new Map() };
  const models = status?.models ?? [];
  const names = models.map((model) => model.name);
  const self = status?.nodes?.find((node) => node.is_self)?.id;
  for (const model of models) {
    const nodeOf = placesOf(model, self);
    for (const [a, b, link] of pairsOf(model)) {
      const [from, to] = [nodeOf(a), nodeOf(b)];
      if (from === undefined || to === undefined) continue;
      add(lines, from, to, { model: model.name, hue: hueOf(model.name, names), a, b, link, ...now(model, a, b, link, meters) });
    }
  }
  return lines;
}

function placesOf(model: ModelStatus, self: string | undefined): (rank: number) => string | undefined {
  return (rank) => {
    const own = model.ranks?.find((other) => other.rank === rank);
    const placed = model.placement?.find((place) => place.rank === rank && place.group === (model.group ?? 0));
    return own?.node ?? placed?.node ?? (own ? self : undefined);
  };
}

// The node where rank 0 runs knows the links; another one knows only which ranks exchange: those of a stage, and each with the next stage.
function pairsOf(model: ModelStatus): [number, number, LinkStatus | undefined][] {
  if (model.links && model.links.length > 0) return model.links.map((link) => [link.a, link.b, link]);
  const ranks = (model.ranks ?? []).map(({ rank }) => rank).sort((a, b) => a - b);
  const width = Math.max(1, Math.round(ranks.length / Math.max(1, model.stages ?? 1)));
  const pairs: [number, number, undefined][] = [];
  for (const [at, a] of ranks.entries()) {
    for (const [other, b] of ranks.entries()) {
      const isOfStage = Math.floor(at / width) === Math.floor(other / width);
      if (other > at && (isOfStage || other === at + width)) pairs.push([a, b, undefined]);
    }
  }
  return pairs;
}

function now(model: ModelStatus, a: number, b: number, link: LinkStatus | undefined, meters: Meters | undefined):
    Pick<LinkFact, "p50Us" | "bytesS" | "isBusy"> {
  const meter = meters?.links?.find((other) => other.model === model.name && other.a === a && other.b === b);
  const tokens = meters?.models?.find((other) => other.name === model.name)?.tokens_s ?? 0;
  const p50Us = meter?.p50_us ?? (link && link.p50_us > 0 ? link.p50_us : undefined);
  return { p50Us, bytesS: meter?.bytes_s, isBusy: meter?.bytes_s !== undefined ? meter.bytes_s > 0 : tokens > 0 };
}

function add(lines: Lines, from: string, to: string, fact: LinkFact): void {
  if (from === to) {
    lines.inside.set(from, [...(lines.inside.get(from) ?? []), fact]);
    return;
  }
  const [a, b] = from < to ? [from, to] : [to, from];
  const key = `${a}~${b}`;
  const line = lines.between.find((other) => other.key === key);
  if (line) line.links.push(fact);
  else lines.between.push({ key, a, b, links: [fact] });
}

const KINDS: Record<string, string> = { shm: "shared memory", tcp: "TCP", "verbs-rc": "RDMA", "verbs-uc": "RDMA, unreliable" };
export const kindOf = (link: LinkStatus | undefined): string => (link ? (KINDS[link.path] ?? link.path) : "not known here");

// The figures of the slowest link of a line: it decides how long an exchange takes.
export function slowest(links: LinkFact[]): LinkFact {
  return links.reduce((slow, other) => ((other.p50Us ?? 0) > (slow.p50Us ?? 0) ? other : slow));
}

export function isEncrypted(links: LinkFact[]): boolean {
  return links.length > 0 && links.every(({ link }) => link?.encrypted === true);
}

export const bytesPerSecond = (links: LinkFact[]): number | undefined => sumOfKnown(links.map(({ bytesS }) => bytesS));
