// The cluster as it is now, for every view: the status, the meters of the last hour, and what has happened.
import { sumOfKnown } from "../lib/sum";
import { joulesOf, nodesOf } from "./energy";
import { SharedFeed, type FeedEvent } from "./feed";
import type { Happening, Meters, ModelStatus, NodeStatus, Status } from "./types";

const METERS_KEPT = 3600; // one a second
const HAPPENINGS_KEPT = 200;

class Live {
  status = $state.raw<Status | undefined>(undefined);
  meters = $state.raw<Meters | undefined>(undefined);
  // The newest last; views read `meters` to follow it.
  readonly history: Meters[] = [];
  happened = $state.raw<Happening[]>([]);
  // Why there is no stream of events now; empty while there is one, or before the first try has ended.
  lost = $state("");
  lostStatus = $state(0);

  readonly nodes = $derived<NodeStatus[]>(this.status?.nodes ?? []);
  readonly models = $derived<ModelStatus[]>(this.status?.models ?? []);
  readonly ready = $derived(this.models.filter((model) => model.state === "ready"));
  readonly control = $derived(this.status?.control ?? false);
  readonly self = $derived(this.nodes.find((node) => node.is_self));
  // The sum over all machines whose power is known; undefined if none is.
  readonly watts = $derived(sumOfKnown(this.meters?.nodes.map((node) => node.power_w)));
  readonly tokensPerSecond = $derived(sumOfKnown(this.meters?.models.map((model) => model.tokens_s)));

  private metersAt = 0; // when they came, by this page's clock
  private feed: SharedFeed | undefined;

  start(): void {
    this.feed ??= new SharedFeed((event) => this.take(event), () => this.status && JSON.stringify(this.status));
  }

  private take(event: FeedEvent): void {
    if (event.kind === "lost") {
      this.lost = event.sentence;
      this.lostStatus = event.status;
      return;
    }
    this.lost = "";
    const data = JSON.parse(event.data);
    if (event.name === "snapshot") this.begin(data as Status);
    if (event.name === "change" && this.status) this.status = changed(this.status, data);
    if (event.name === "meters") this.addMeters(data as Meters);
    if (event.name === "happened") this.happened = [...this.happened, data as Happening].slice(-HAPPENINGS_KEPT);
  }

  private begin(status: Status): void {
    this.status = status;
    this.happened = status.happened ?? [];
  }

  private addMeters(meters: Meters): void {
    this.history.push(meters);
    if (this.history.length > METERS_KEPT) this.history.shift();
    this.meters = meters;
    this.metersAt = performance.now();
  }

  // For an answer of the model that begins now: when it has just ended, the joules of its last `ms`. undefined if they were not
  // measured, or if other machines compute the model then.
  energyOf(name: string): (ms: number) => number | undefined {
    const nodes = this.nodesOf(name);
    return (ms) => {
      if (!this.meters || String(this.nodesOf(name)) !== String(nodes)) return undefined;
      const nowMs = this.meters.now_ms + performance.now() - this.metersAt;
      return joulesOf(this.history, nodes, nowMs - ms, nowMs);
    };
  }

  private nodesOf(name: string): string[] { return nodesOf(this.models.find((model) => model.name === name), this.self?.id); }
}

function changed(status: Status, members: Record<string, unknown>): Status {
  const next: Record<string, unknown> = { ...status, ...members };
  for (const [name, value] of Object.entries(members)) if (value === null) delete next[name];
  return next as unknown as Status;
}

export const live = new Live();
