// /cluster/requests, asked each second while the view is open and can be seen.
import { json } from "../lib/api";
import { poll } from "../lib/poll";
import { tracesAfter, type RequestInfo, type Trace } from "./requests";

const ASK_MS = 1_000;

class Requests {
  list = $state.raw<RequestInfo[] | undefined>(undefined);
  // Also of requests that have ended, the oldest first.
  traces = $state.raw<Trace[]>([]);
  refusal = $state("");

  // For an effect: returns what stops it.
  follow(): () => void { return poll(ASK_MS, () => this.look()); }

  private async look(): Promise<void> {
    try {
      const { requests } = await json<{ requests: RequestInfo[] }>("GET", "/cluster/requests");
      this.list = requests;
      this.traces = tracesAfter(this.traces, requests, Date.now());
      this.refusal = "";
    } catch (error) {
      this.refusal = (error as Error).message;
    }
  }
}

export const requests = new Requests();
