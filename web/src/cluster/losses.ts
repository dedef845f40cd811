// Loss and healing as they happen: since when nodes are lost, and in which word a model's state is said.
import type { Happening, ModelStatus, Status } from "./types";

const HEALED_MS = 30_000; // how long a model that serves again says so

// Since when each lost node is lost. `before` is the last answer. A loss that nobody reported counts from `nowMs`.
export function lossesAfter(before: Map<string, number>, status: Status | undefined, happened: Happening[], nowMs: number): Map<string,
  number> {
  const after = new Map<string, number>();
  for (const { id, name, state } of status?.nodes ?? []) {
    if (state !== "dead") continue;
    const said = happened.findLast(({ kind, sentence }) => kind === "node_lost" &&
      sentence.startsWith(`${name || id.slice(0, 8)} is lost`));
    after.set(id, said?.at_ms ?? before.get(id) ?? nowMs);
  }
  return after;
}

interface ModelWord { word: string; tone: "good" | "busy" | "bad" | ""; sentence: string }

export function modelWord(model: ModelStatus, happened: Happening[], nowMs: number): ModelWord {
  const last = happened.findLast(({ kind, sentence }) =>
    ["ready", "paused", "healed", "failed", "load"].includes(kind) && sentence.startsWith(`${model.name} `));
  const sentence = model.sentence || model.last_error || "";
  if (model.state === "ready") {
    const isHealed = last?.kind === "healed" && nowMs - last.at_ms < HEALED_MS;
    return isHealed ? { word: "healed", tone: "good", sentence: last.sentence } : { word: "ready", tone: "good", sentence: "" };
  }
  if (model.state === "failed") return { word: "failed", tone: "bad", sentence };
  if (last?.kind === "paused") return { word: "paused", tone: "bad", sentence: sentence || last.sentence };
  return { word: model.phase ?? model.state, tone: "busy", sentence };
}
