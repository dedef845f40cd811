// Tabs of this browser that show the same history. Each tells the others of its changes; one tab alone writes an answer.
import { Leases } from "../../lib/lease";
import { local, type Store } from "../../lib/storage";
import type { Message } from "../engine/types";

export type TabNews =
  | { kind: "conversation"; id: string } // made, changed or removed
  | { kind: "answer"; message: Message }; // how far an answer has come

const CHANNEL = "lockstep.chat";
const LEASE = "lockstep.answer.";
const LEASE_MS = 4_000;

export class Tabs {
  private readonly channel?: BroadcastChannel;
  private readonly leases: Leases;

  constructor(hear: (news: TabNews) => void, store?: Store, now: () => number = Date.now) {
    this.leases = new Leases(LEASE_MS, store ? () => store : local, now);
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
  claim(message: string): boolean { return this.leases.claim(LEASE + message); }

  release(message: string): void { this.leases.release(LEASE + message); }
}
