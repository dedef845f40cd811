// Leases in the browser's storage: a name belongs to one tab at a time, and a tab that has died loses it. Without storage each tab
// has every name.
import { local, read, remove, write, type Store } from "./storage";

export class Leases {
  readonly tab = Math.random().toString(36).slice(2);

  // A lease lasts `ms` unless it is claimed again.
  constructor(private readonly ms: number, private readonly store: () => Store = local, private readonly now: () => number = Date.now) {}

  // True if this tab has the name now. One that no tab has is taken if `mayTake`.
  claim(name: string, mayTake = true): boolean {
    const lease = this.lease(name);
    const now = this.now();
    // A lease far in the future is of a clock that was wrong.
    const isFree = !lease || lease.until < now || lease.until > now + 10 * this.ms;
    if (lease?.tab !== this.tab && (!isFree || !mayTake)) return false;
    write(this.store, name, JSON.stringify({ tab: this.tab, until: now + this.ms }));
    return true;
  }

  release(name: string): void {
    if (this.lease(name)?.tab === this.tab) remove(this.store, name);
  }

  private lease(name: string): { tab: string; until: number } | undefined {
    try {
      return JSON.parse(read(this.store, name) ?? "") as { tab: string; until: number };
    } catch {
      return undefined;
    }
  }
}
