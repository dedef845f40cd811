// Machines as the picture, the table and the panel show them: the status joined with the meters and with the ranks of all models.
import { sumOfKnown } from "../lib/sum";
import { hueOf } from "./hues";
import type { Meters, ModelStatus, NodeMeters, NodeStatus, RankStatus, Status } from "./types";

interface Part { model: string; hue: string; bytes: number }
interface Tile {
  model: string; hue: string; rank: number; group: number; bytes?: number;
  layers?: [number, number]; // first and last, from 0
  part?: number; // of each of its layers, 0 to 1
  device?: string; // where it computes
}
type Tone = "good" | "busy" | "bad" | "";
export interface Machine {
  node: NodeStatus; id: string; name: string; leads: boolean; word: string; mark: string; tone: Tone;
  lostSeconds?: number; // since it was lost, as far as this page knows
  parts: Part[]; other: number; // promised bytes that belong to no model of the list
  tiles: Tile[]; meters: NodeMeters | undefined;
}

const STATES: Record<string, [word: string, mark: string, tone: Tone]> = {
  alive: ["running", "●", "good"], suspect: ["late", "◐", "busy"], dead: ["lost", "✕", "bad"],
  foreign: ["other cluster", "◇", ""], absent: ["not seen", "○", ""],
};

export const nameOf = (node: NodeStatus): string => node.name || node.id.slice(0, 8);

export const isGone = ({ node }: Machine): boolean => node.state === "dead" || node.state === "absent";

// `lost` holds since when nodes are lost (losses.ts), `nowMs` is on the same clock.
export function machinesOf(status: Status | undefined, meters: Meters | undefined, lost: Map<string, number>, nowMs: number): Machine[] {
  const models = status?.models ?? [];
  const nodes = status?.nodes ?? [];
  const tiles = tilesOf(models, nodes.find((node) => node.is_self)?.id);
  return nodes.map((node) => {
    const [word, mark, tone] = STATES[node.state] ?? [node.state, "?", ""];
    const own = tiles.filter((tile) => tile.node === node.id);
    const parts = partsOf(own);
    const used = parts.reduce((sum, part) => sum + part.bytes, 0);
    const at = lost.get(node.id);
    return {
      node, id: node.id, leads: node.is_coordinator && nodes.length > 1, name: nameOf(node), word, mark, tone, parts, tiles: own,
        other: Math.max(0, (node.promised_bytes ?? 0) - used),
      lostSeconds: at === undefined ? undefined : Math.max(0, (nowMs - at) / 1000),
      meters: meters?.nodes.find((other) => other.node === node.id),
    };
  });
}

function tilesOf(models: ModelStatus[], self: string | undefined): (Tile & { node: string })[] {
  const names = models.map((model) => model.name);
  return models.flatMap((model) => {
    const ranks = model.ranks ?? [];
    const hue = hueOf(model.name, names);
    const of = (rank: number, group: number) => (group === (model.group ?? 0) ? ranks.find((other) => other.rank === rank) : undefined);
    if (model.placement && model.placement.length > 0) {
      return model.placement.map(({ rank, node, bytes, group }) => ({
        model: model.name, hue, rank, group, node, bytes, ...detail(of(rank, group), ranks),
      }));
    }
    // A model that this node runs by itself has no placement.
    return ranks.map((rank) => ({
      model: model.name, hue, rank: rank.rank, group: model.group ?? 0, node: rank.node ?? self ?? "",
      bytes: sumOfKnown([rank.weight_bytes, rank.state_bytes]), ...detail(rank, ranks),
    }));
  });
}

function detail(rank: RankStatus | undefined, ranks: RankStatus[]): Pick<Tile, "layers" | "part" | "device"> {
  if (!rank) return {};
  const peers = ranks.filter((other) => String(other.layers) === String(rank.layers));
  const whole = sumOfKnown(peers.map((other) => other.share));
  return { layers: rank.layers, part: rank.share !== undefined && whole ? rank.share / whole : undefined,
    device: rank.device || undefined };
}

function partsOf(tiles: Tile[]): Part[] {
  const parts: Part[] = [];
  for (const { model, hue, bytes } of tiles) {
    const part = parts.find((other) => other.model === model);
    if (part) part.bytes += bytes ?? 0;
    else parts.push({ model, hue, bytes: bytes ?? 0 });
  }
  return parts;
}

// Which rank, which layers, which share of each, in at most `letters` if they suffice for the short form.
export function tileText({ rank, layers, part }: Tile, letters: number): string {
  const share = part !== undefined && part < 0.999 ? ` ${Math.round(part * 100)} %` : "";
  if (!layers) return `rank ${rank}${share}`;
  const long = `rank ${rank}, layers ${layers[0]}–${layers[1]}${share && `,${share} of each`}`;
  return long.length <= letters ? long : `${rank}: ${layers[0]}–${layers[1]}${share}`;
}

export function tileSentence({ model, rank, layers, part, device }: Tile): string {
  const share = part !== undefined && part < 0.999 ? `${Math.round(part * 100)} % of ` : "";
  const held = layers ? `: ${share}layers ${layers[0]} to ${layers[1]}` : share ? `: ${share}each layer` : "";
  return `${model}, rank ${rank}${held}${device ? `, on ${device}` : ""}`;
}
