// The state of the Connect view: the address, model and key that the settings are made of.
import { session } from "../app/session.svelte";
import { live } from "../cluster/live.svelte";
import { json } from "../lib/api";
import { originOf, type Target } from "./target";

interface Shown { model_info?: Record<string, unknown>; capabilities?: string[] }

class Connect {
  addressText = $state(location.origin);
  key = $state(""); // in memory only
  private chosen = $state("");
  private shown = $state.raw<{ model: string; context?: number; hasTools?: boolean }>({ model: "" });

  readonly origin = $derived(originOf(this.addressText));
  readonly models = $derived(live.models.map((model) => model.name));
  readonly model = $derived(this.models.includes(this.chosen) ? this.chosen : (live.ready[0]?.name ?? this.models[0] ?? ""));
  readonly target = $derived.by((): Target => {
    const known = this.shown.model === this.model ? this.shown : undefined;
    return {
      origin: this.origin ?? location.origin, model: this.model, key: this.key.trim(), keysNeeded: session.now.keys_needed,
      context: live.models.find((model) => model.name === this.model)?.context ?? known?.context, hasTools: known?.hasTools,
    };
  });

  choose(model: string): void { this.chosen = model; }

  // Context and capabilities of the model; what cannot be asked stays unknown.
  async look(model: string): Promise<void> {
    if (model === "" || this.shown.model === model) return;
    try {
      const { model_info: info = {}, capabilities } = await json<Shown>("POST", "/api/show", { model });
      const length = Object.entries(info).find(([name]) => name.endsWith(".context_length"))?.[1];
      this.shown = { model, context: typeof length === "number" ? length : undefined, hasTools: capabilities?.includes("tools") };
    } catch {
      // Without it there are fewer warnings.
    }
  }
}

export const connect = new Connect();
