// Since when downloads and loads stand still, for every bar of the page.
import { live } from "../cluster/live.svelte";
import { stillAfter, type Still } from "./progress";

class Stalls {
  private now = $state.raw(new Map<string, Still>());
  private nowMs = $state(0);
  private before = new Map<string, Still>();

  constructor() {
    $effect.root(() => {
      $effect(() => {
        const nowMs = live.meters?.now_ms ?? Date.now();
        this.before = stillAfter(this.before, live.status, nowMs);
        this.now = this.before;
        this.nowMs = nowMs;
      });
    });
  }

  // Seconds; undefined while it moves.
  of(key: string): number | undefined {
    const still = this.now.get(key);
    return still?.isStill ? Math.max(0, (this.nowMs - still.sinceMs) / 1000) : undefined;
  }
}

export const stalls = new Stalls();
