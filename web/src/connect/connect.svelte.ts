// The state of the Connect view: the address, model and key that the settings are made of.
import { session } from "../app/session.svelte";
import { catalog } from "../cluster/catalog.svelte";
import { live } from "../cluster/live.svelte";
import { originOf, type Target } from "./target";

class Connect {
  addressText = $state(location.origin);
  key = $state(""); // in memory only
  private chosen = $state("");

  readonly origin = $derived(originOf(this.addressText));
  readonly models = $derived(live.models.map((model) => model.name));
  readonly model = $derived(this.models.includes(this.chosen) ? this.chosen : (live.ready[0]?.name ?? this.models[0] ?? ""));
  readonly target = $derived<Target>({
    origin: this.origin ?? location.origin, model: this.model, key: this.key.trim(), keysNeeded: session.now.keys_needed,
    context: catalog.contextOf(this.model), hasTools: catalog.kind(this.model)?.tools,
  });

  choose(model: string): void { this.chosen = model; }

  // Context and capabilities of the model; what cannot be asked stays unknown.
  async look(model: string): Promise<void> {
    if (model !== "") await catalog.learn(model).catch(() => {}); // Without it there are fewer warnings.
  }
}

export const connect = new Connect();
