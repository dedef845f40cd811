// The state of the Cluster view, computed once for its picture, tables and panel.
import { linesOf } from "./lines";
import { lossesAfter } from "./losses";
import { live } from "./live.svelte";
import { machinesOf } from "./machines";

class ClusterNow {
  // A machine's id, or a line's key; "" for none.
  chosen = $state("");
  private losses = $state.raw(new Map<string, number>());

  readonly nowMs = $derived(live.meters?.now_ms ?? Date.now());
  readonly machines = $derived(machinesOf(live.status, live.meters, this.losses, this.nowMs));
  readonly lines = $derived(linesOf(live.status, live.meters));
  readonly machine = $derived(this.machines.find((machine) => machine.id === this.chosen));
  readonly line = $derived(this.lines.between.find((line) => line.key === this.chosen));

  // For an effect: follows the status.
  follow(): void {
    this.before = lossesAfter(this.before, live.status, live.happened, live.meters?.now_ms ?? Date.now());
    this.losses = this.before;
  }
  private before = new Map<string, number>();

  nameOf(id: string): string { return this.machines.find((machine) => machine.id === id)?.name ?? id.slice(0, 8); }
  choose(id: string): void { this.chosen = this.chosen === id ? "" : id; }
}

export const now = new ClusterNow();
