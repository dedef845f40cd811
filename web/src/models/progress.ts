// Progress as it was measured: parts of bytes, and since when nothing has moved.
import type { Status } from "../cluster/types";

// undefined: the whole is not known.
export function progressPart(read: number | undefined, whole: number | undefined): number | undefined {
  if (!whole || whole <= 0) return undefined;
  return Math.min(1, Math.max(0, (read ?? 0) / whole));
}

export interface Still { bytes: number; sinceMs: number; isStill: boolean }

// Since when each download and each load in progress has had its bytes; `isStill` once the node's own rate of the last seconds is 0.
export function stillAfter(before: Map<string, Still>, status: Status | undefined, nowMs: number): Map<string, Still> {
  const after = new Map<string, Still>();
  const look = (key: string, bytes: number, rate: number | undefined): void => {
    const old = before.get(key);
    const hasMoved = !old || old.bytes !== bytes;
    after.set(key, { bytes, sinceMs: hasMoved ? nowMs : old.sinceMs, isStill: rate === 0 });
  };
  for (const pull of status?.pulls ?? []) {
    if (pull.phase === "downloading") look(`pull ${pull.model}`, pull.read_bytes ?? 0, pull.bytes_s);
  }
  for (const model of status?.models ?? []) {
    if (model.loading) look(`load ${model.name}`, model.loading.read_bytes, model.loading.bytes_s);
  }
  return after;
}
