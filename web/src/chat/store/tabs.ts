// Tabs of this browser that show the same history. Each tells the others of its changes; one tab alone writes an answer.
import type { Message } from "../engine/types";

export type TabNews =
  | { kind: "conversation"; id: string } // made, changed or removed
  | { kind: "answer"; message: Message }; // how far an answer has come

const CHANNEL = "lockstep.chat";
const LEASE = "lockstep.answer.";
const LEASE_MS = 4_000;

export interface LeaseStore { getItem(name: string): string | null; setItem(name: string,
  value: string): void; removeItem(name: string): void }

export class Tabs {
  private readonly channel?: BroadcastChannel;
  private readonly tab = Math.random().toString(36).slice(2);

  constructor(hear: (news: TabNews) => void, private readonly store: LeaseStore | undefined = storage(),
      private readonly now: () => number = Date.now) {
    if (typeof BroadcastChannel === "undefined") return;
    this.channel = new BroadcastChannel(CHANNEL);
    this.channel.onmessage = ({ data }) => hear(data as TabNews);
  }

  tell(news: TabNews): void {
    try {
      this.channel?.postMessage(news);
    } catch {
      // A value that cannot be copied: the other tabs read the stored one when they are looked at.
    }
  }

  // True if this tab may write the answer, for LEASE_MS from now. A tab that has died loses it by that.
  claim(message: string): boolean {
    const lease = this.lease(message);
    if (lease && lease.tab !== this.tab && lease.until > this.now() && lease.until < this.now() + 10 * LEASE_MS) return false;
    try {
      this.store?.setItem(LEASE + message, JSON.stringify({ tab: this.tab, until: this.now() + LEASE_MS }));
    } catch {
      // Without storage the tabs do not share a history either.
    }
    return true;
  }

  release(message: string): void {
    try {
      if (this.lease(message)?.tab === this.tab) this.store?.removeItem(LEASE + message);
    } catch {
      // As in claim.
    }
  }

  private lease(message: string): { tab: string; until: number } | undefined {
    try {
      return JSON.parse(this.store?.getItem(LEASE + message) ?? "") as { tab: string; until: number };
    } catch {
      return undefined;
    }
  }
}

function storage(): LeaseStore | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}
