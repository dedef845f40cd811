// One stream of /cluster/events for all tabs of this browser: HTTP/1.1 gives a browser six connections to a node, for all tabs together.
// A tab that can be seen holds the lease, reads the stream and passes each event to the others.
import { ApiError } from "../lib/api";
import { streamEvents } from "../lib/event_stream";
import { Leases } from "../lib/lease";

export type FeedEvent =
  | { kind: "event"; name: string; data: string }
  | { kind: "lost"; sentence: string; status: number };

const CHANNEL = "lockstep.events";
const LEASE = "lockstep.events.lease";
const LEASE_MS = 3_500;
const RENEW_MS = 1_000;
const RETRY_MS = 2_000;

export class SharedFeed {
  private readonly leases = new Leases(LEASE_MS);
  private readonly channel = new BroadcastChannel(CHANNEL);
  private stream: AbortController | undefined;
  private retryAt = 0;

  // `snapshot` is what a tab that has just opened gets to begin with.
  constructor(private readonly take: (event: FeedEvent) => void, private readonly snapshot: () => string | undefined) {
    this.channel.onmessage = ({ data }) => this.hear(data);
    addEventListener("pagehide", () => this.release());
    addEventListener("pageshow", () => this.renew());
    setInterval(() => this.renew(), RENEW_MS);
    this.channel.postMessage({ hello: this.leases.tab });
    this.renew();
  }

  private hear(message: { hello?: string; feed?: FeedEvent }): void {
    if (message.feed && !this.stream) this.take(message.feed);
    const snapshot = message.hello && this.stream ? this.snapshot() : undefined;
    if (snapshot) this.channel.postMessage({ feed: { kind: "event", name: "snapshot", data: snapshot } });
  }

  private renew(): void {
    if (!this.leases.claim(LEASE, !document.hidden)) return this.stop();
    if (!this.stream && Date.now() >= this.retryAt) void this.read();
  }

  private release(): void {
    this.leases.release(LEASE);
    this.stop();
  }

  private stop(): void {
    this.stream?.abort();
    this.stream = undefined;
  }

  private pass(event: FeedEvent): void {
    this.take(event);
    this.channel.postMessage({ feed: event });
  }

  private async read(): Promise<void> {
    const stream = new AbortController();
    this.stream = stream;
    let lost = { sentence: "The node ended the stream of events.", status: 0 };
    try {
      await streamEvents("GET", "/cluster/events", undefined, stream.signal,
        ({ event, data }) => this.pass({ kind: "event", name: event, data }));
    } catch (error) {
      if (error instanceof ApiError) lost = { sentence: error.message, status: error.status };
    }
    if (this.stream !== stream) return;
    this.stream = undefined;
    this.retryAt = Date.now() + RETRY_MS;
    this.pass({ kind: "lost", ...lost });
  }
}
