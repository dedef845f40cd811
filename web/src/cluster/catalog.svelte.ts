// The models that can answer, and what each one is. Kept current by the live status, or by /v1/models where that is not to be had.
import { json } from "../lib/api";
import { disk } from "../models/disk.svelte";
import { live } from "./live.svelte";
import type { Loading, ModelStatus } from "./types";

const LOOK_MS = 250;
const STANDSTILL_MS = 600_000; // a model that neither reads nor changes for so long is not waited for any longer

export interface Choice {
  name: string;
  state: "ready" | "loading" | "waiting" | "failed" | "stored"; // stored: on a disk, not loaded
  sentence: string;
  loading?: Loading;
  context?: number;
  bytes?: number;
}

// Abilities of a loaded model. Without a template its answers continue a text. Absent: the node does not say.
interface Kind { isChat: boolean; tools?: boolean; context?: number; parameters?: number }

interface Shown { template?: string; capabilities?: string[]; model_info?: Record<string, unknown> }

class Catalog {
  private listed = $state.raw<string[]>([]);
  private kinds = $state.raw<Record<string, Kind>>({});
  private woken = new Set<string>(); // models that this page had loaded; the status shows them a little later
  private asked = new Map<string, Promise<Kind>>();
  refusal = $state(""); // why the list is not to be had

  readonly loaded = $derived.by<Choice[]>(() => (live.status ? live.models.map(choiceOf) : this.listed.map((name) => ({ name,
    state: "ready" as const, sentence: "" }))));
  // The whole models on disks, as far as `disk` was asked.
  private readonly stored = $derived.by(() => {
    const models = (disk.report?.nodes ?? []).flatMap((node) => node.models ?? []).filter((model) => model.complete);
    return [...new Map(models.map(({ name, bytes, whole_bytes }) => [name, { name, bytes: whole_bytes ?? bytes }])).values()];
  });
  // With models on disks that are not loaded: for callers with control, who may load them.
  readonly choices = $derived.by<Choice[]>(() => {
    const names = new Set(live.models.flatMap((model) => [model.name, String(model.wanted?.path ?? "")]));
    const others = this.stored.filter(({ name }) => !names.has(name));
    return [...this.loaded, ...others.map(({ name, bytes }) => ({ name, bytes, state: "stored" as const, sentence: "" }))];
  });
  readonly isKnown = $derived(live.status !== undefined || this.listed.length > 0);

  // Asks for the models where the status is refused.
  async refresh(): Promise<void> {
    try {
      this.listed = (await json<{ data: { id: string }[] }>("GET", "/v1/models")).data.map(({ id }) => id);
      this.refusal = "";
    } catch (error) {
      this.refusal = (error as Error).message;
    }
  }

  find(name: string): Choice | undefined { return this.choices.find((choice) => choice.name === name); }
  kind(name: string): Kind | undefined { return this.kinds[name]; }

  // Asks once for each model. Rejects with ApiError if the node does not say.
  learn(name: string): Promise<Kind> {
    let asked = this.asked.get(name);
    if (!asked) {
      asked = this.ask(name);
      this.asked.set(name, asked);
      asked.catch(() => this.asked.delete(name));
    }
    return asked;
  }

  private async ask(name: string): Promise<Kind> {
    const shown = await json<Shown>("POST", "/api/show", { model: name });
    const info = shown.model_info ?? {};
    const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
    const kind: Kind = { isChat: (shown.template ?? "") !== "", tools: shown.capabilities?.includes("tools"),
      context: number(Object.entries(info).find(([key]) => key.endsWith(".context_length"))?.[1]),
      parameters: number(info["general.parameter_count"]) };
    this.kinds = { ...this.kinds, [name]: kind };
    return kind;
  }

  contextOf(name: string): number | undefined {
    return live.models.find((model) => model.name === name)?.context ?? this.kinds[name]?.context;
  }

  // The name of a loaded model that was chosen by the path or the hub's name that it was loaded from.
  resolve(name: string): string {
    const { models } = live;
    return models.some((model) => model.name === name) ? name : models.find((model) => model.wanted?.path === name)?.name ?? name;
  }

  // Has a model loaded that lies on a disk. Returns the name that it answers to. Throws Error with a sentence.
  async wake(name: string, signal: AbortSignal): Promise<string> {
    const here = this.resolve(name);
    // The node knows more names than we do: it says what is wrong with one.
    if (!live.status || live.models.some((model) => model.name === here) || this.find(name)?.state !== "stored") return here;
    if (!live.control) throw new Error(`${name} is not loaded, and only a browser on the node's own machine may load it.`);
    const { model } = await json<{ model: string }>("POST", "/cluster/load", { model: name }, { signal });
    this.woken.add(model);
    return model;
  }

  // Resolves once the model can answer. Names that the status does not have are left to the node.
  async ready(name: string, signal: AbortSignal): Promise<void> {
    if (this.woken.has(name) || live.models.some((model) => model.name === name)) await untilReady(name, signal);
  }
}

async function untilReady(name: string, signal: AbortSignal): Promise<void> {
  let seen = "";
  let movedAt = performance.now();
  while (!signal.aborted) {
    const model = live.models.find((one) => one.name === name);
    if (model?.state === "ready" || model?.state === "restarting") return;
    if (model?.state === "failed") throw new Error(model.last_error || `${name} could not be loaded.`);
    const now = JSON.stringify([model?.phase, model?.sentence, model?.loading?.read_bytes]);
    if (now !== seen) movedAt = performance.now();
    seen = now;
    if (performance.now() - movedAt > STANDSTILL_MS) {
      throw new Error(`${name} has not come nearer to being loaded for ten minutes. ${model?.sentence ?? ""}`);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new DOMException("stopped", "AbortError");
}

function choiceOf(model: ModelStatus): Choice {
  const phase = model.phase ?? (model.state === "ready" ? "ready" : "loading");
  const state = model.state === "ready" ? "ready" : model.state === "failed" ? "failed"
    : phase === "waiting" || phase === "placing" ? "waiting" : "loading";
  return { name: model.name, state, sentence: model.sentence || model.last_error || "", loading: model.loading, context: model.context };
}

export const catalog = new Catalog();
