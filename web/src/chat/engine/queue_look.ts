// The places of waiting answers in the node's queue. All answers of the tab share one look at the node's requests.
import type { RequestInfo } from "../../activity/requests";
import { json } from "../../lib/api";

const FRESH_MS = 400; // a look serves every answer that asks within this time
const LOOK_MS = 1_000;

export class QueueLook {
  private list: Promise<RequestInfo[]> | undefined;
  private isAsking = false;
  private askedAt = 0;

  constructor(private readonly ask: () => Promise<RequestInfo[]>, private readonly now: () => number = () => performance.now()) {}

  // Rejects as `ask` does.
  requests(): Promise<RequestInfo[]> {
    const now = this.now();
    if (!this.list || (!this.isAsking && now - this.askedAt >= FRESH_MS)) {
      this.askedAt = now;
      this.isAsking = true;
      this.list = this.ask().finally(() => { this.isAsking = false; });
    }
    return this.list;
  }
}

// The place of the waiting request that fits the model and the age best; undefined if none waits for the model.
export function placeOf(requests: readonly RequestInfo[], model: string | undefined, age_s: number): number | undefined {
  const distance = (request: RequestInfo): number => Math.abs((request.age_s ?? 0) - age_s);
  return requests.filter((one) => one.own !== false && one.phase === "waiting" && one.model === model)
    .sort((a, b) => distance(a) - distance(b))[0]?.place;
}

export const queueLook = new QueueLook(async () =>
  (await json<{ requests: RequestInfo[] }>("GET", "/cluster/requests", undefined, { timeout: LOOK_MS })).requests);
