// One row for each model: what is loaded, what lies on which disk, what is being downloaded, joined by the model's name and path.
import type { ModelStatus, Pull } from "../cluster/types";
import { sumOfKnown } from "../lib/sum";

interface DiskModel {
  name: string; bytes: number; whole_bytes?: number; complete: boolean; copies: "whole" | "share"; path?: string; removable?: boolean;
}
interface DiskNode { node: string; name?: string; free_bytes?: number; models?: DiskModel[]; sentence?: string; left_out?: number }
export interface DiskReport { nodes: DiskNode[] }

export interface Copy { node: string; nodeName: string; model: DiskModel }
export interface ModelRow {
  key: string; name: string; loaded: ModelStatus | undefined; pull: Pull | undefined; copies: Copy[];
  wholeBytes?: number; isComplete: boolean; // whether a disk has it whole, or all its shares
}

const STEM = /^.*[/\\]/;

// Whether a loaded model and a model on a disk are the same: by the path that is wanted, or the name that the path gives.
function isOf(loaded: ModelStatus, name: string, paths: (string | undefined)[]): boolean {
  const path = typeof loaded.wanted?.path === "string" ? loaded.wanted.path : "";
  return path === name || paths.some((other) => other !== undefined && other === path) || loaded.name === name ||
    (path === "" && loaded.name === name.replace(STEM, ""));
}

export function rowsOf(models: ModelStatus[], pulls: Pull[], disk: DiskReport | undefined): ModelRow[] {
  const rows = new Map<string, ModelRow>();
  const row = (name: string): ModelRow => {
    let found = rows.get(name);
    if (!found) rows.set(name, found = { key: name, name, loaded: undefined, pull: undefined, copies: [], isComplete: false });
    return found;
  };
  for (const node of disk?.nodes ?? []) {
    for (const model of node.models ?? []) {
      const found = row(model.name);
      found.copies.push({ node: node.node, nodeName: node.name || node.node.slice(0, 8), model });
      found.isComplete ||= model.complete;
      found.wholeBytes = Math.max(found.wholeBytes ?? 0, model.whole_bytes ?? (model.complete ? model.bytes : 0)) || undefined;
    }
  }
  for (const pull of pulls) {
    const found = row(pull.model);
    found.pull = pull;
    found.wholeBytes ??= pull.whole_bytes;
  }
  for (const loaded of models) {
    const same = [...rows.values()].find((other) => !other.loaded && isOf(loaded, other.name, other.copies.map(({ model }) => model.path)));
    const found = same ?? row(loaded.name);
    found.loaded = loaded;
    found.wholeBytes ??= loaded.disk?.whole_bytes ?? weightsOf(loaded);
  }
  return [...rows.values()].sort((a, b) => weightOf(b) - weightOf(a) || a.name.localeCompare(b.name));
}

const weightsOf = (loaded: ModelStatus): number | undefined => sumOfKnown((loaded.ranks ?? []).map((rank) => rank.weight_bytes));

// Loaded ones first, then those that are on their way.
const weightOf = (row: ModelRow): number => (row.loaded ? 2 : 0) + (row.pull && row.pull.phase !== "done" ? 1 : 0);

// A row of some other name matches all words.
export function matching(rows: ModelRow[], words: string): ModelRow[] {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return rows.filter(({ name }) => wanted.every((word) => name.toLowerCase().includes(word)));
}

export const isActive = (pull: Pull | undefined): boolean =>
  pull !== undefined && ["waiting", "listing", "downloading", "checking"].includes(pull.phase);
