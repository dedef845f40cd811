// Reads one streamed answer to its end, over as many connections as it takes. The node goes on while nobody reads
// (X-Lockstep-Stream: keep), so a lost connection or a reload costs nothing; without that help the answer ends there.
import { ApiError, ask } from "../../lib/api";
import { readEvents } from "../../lib/event_stream";
import type { ServerEvent } from "../../lib/sse";
import type { AnswerRequest } from "./request";

const SILENCE_MS = 45_000; // the node writes at least each 15 s, so a connection that is silent for longer is dead
const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 5_000;
const LOST_MAX_MS = 90_000; // the node gives up an answer that nobody reads for 60 s
const HEAD_MS = 10_000; // for the head of a stream that is read on
const END_MS = 5_000;

export interface StreamHooks {
  take(event: ServerEvent): void; // throws to end the answer with an error
  kept(id: string): void; // the node keeps the stream under this id
  next(): number; // number of the first event that has not been taken
  isEnded(): boolean; // the last event has been taken
  lost(sentence: string): void; // the connection is lost and being made again; "" once it is there
}

// How it ended: `done`: with its last event. `cut`: it cannot be read on, `sentence` says why. `stopped`: by `signal`.
export interface StreamEnd { kind: "done" | "cut" | "stopped"; sentence: string; error?: ApiError }

interface Clock { now(): number; sleep(ms: number, signal: AbortSignal): Promise<void> }
const browserClock: Clock = { now: () => performance.now(), sleep: sleepUnlessWoken };

// Waits `ms`, or until the browser is online or looked at again, since the clocks of a sleeping phone stand still.
function sleepUnlessWoken(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      removeEventListener("online", wake);
      document.removeEventListener("visibilitychange", wake);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    addEventListener("online", wake);
    document.addEventListener("visibilitychange", wake);
    signal.addEventListener("abort", wake);
  });
}

export class KeptStream {
  constructor(private readonly hooks: StreamHooks, private readonly signal: AbortSignal,
    private readonly clock: Clock = browserClock) {}

  // Asks for the answer. Throws ApiError if the node refuses it before the first event.
  async begin(request: AnswerRequest): Promise<StreamEnd> {
    return this.ending(async () => {
      const cut = this.newReader();
      const response = await ask("POST", request.path, request.body, { signal: cut.signal, headers: { "X-Lockstep-Stream": "keep" } });
      const id = response.headers.get("x-lockstep-stream") ?? undefined;
      if (id) this.hooks.kept(id);
      if (await this.read(response, cut)) return { kind: "done", sentence: "" };
      if (id === undefined) return { kind: "cut", sentence: "The connection to the node was lost." };
      return this.goOn(id);
    }, true);
  }

  // Reads on a stream of which another page, or this one before a reload, has read the beginning.
  async resume(id: string): Promise<StreamEnd> {
    return this.ending(() => this.goOn(id), false);
  }

  private async ending(work: () => Promise<StreamEnd>, throwsRefusal: boolean): Promise<StreamEnd> {
    try {
      return await work();
    } catch (error) {
      if (this.signal.aborted) return { kind: "stopped", sentence: "" };
      if (throwsRefusal && error instanceof ApiError) throw error;
      return { kind: "cut", sentence: (error as Error).message };
    }
  }

  private async goOn(id: string): Promise<StreamEnd> {
    let lostSince = this.clock.now();
    let wait = RETRY_FIRST_MS;
    for (;;) {
      const before = this.hooks.next();
      try {
        const cut = this.newReader();
        const late = setTimeout(() => cut.abort(), HEAD_MS);
        const response = await ask("GET", `/v1/streams/${encodeURIComponent(id)}?from=${before}`, undefined, { signal: cut.signal })
          .finally(() => clearTimeout(late));
        this.hooks.lost("");
        if (await this.read(response, cut)) return { kind: "done", sentence: "" };
      } catch (error) {
        if (this.signal.aborted) return { kind: "stopped", sentence: "" };
        if (!(error instanceof ApiError)) {
          if ((error as Error).name !== "AbortError") throw error;
        } else if (isGone(error.status)) return { kind: "cut", sentence: error.message, error };
      }
      if (this.hooks.next() > before) {
        lostSince = this.clock.now();
        wait = RETRY_FIRST_MS;
      }
      if (this.clock.now() - lostSince > LOST_MAX_MS) return { kind: "cut", sentence: "The node could not be reached again." };
      this.hooks.lost("The connection is lost; trying again. The node goes on meanwhile.");
      await this.clock.sleep(wait, this.signal);
      if (this.signal.aborted) return { kind: "stopped", sentence: "" };
      wait = Math.min(2 * wait, RETRY_MAX_MS);
    }
  }

  private newReader(): AbortController {
    const cut = new AbortController();
    if (this.signal.aborted) cut.abort();
    this.signal.addEventListener("abort", () => cut.abort(), { once: true, signal: cut.signal });
    return cut;
  }

  // True once the last event was taken. False if the connection was lost before. Errors of `take` go on.
  private async read(response: Response, cut: AbortController): Promise<boolean> {
    let silent = setTimeout(() => cut.abort(), SILENCE_MS);
    let fault: unknown;
    try {
      await readEvents(response, (event) => {
        try {
          this.hooks.take(event);
        } catch (error) {
          fault = error;
          throw error;
        }
      }, () => {
        clearTimeout(silent);
        silent = setTimeout(() => cut.abort(), SILENCE_MS);
      });
    } catch (error) {
      if (fault !== undefined) throw fault;
      if (this.signal.aborted) throw error;
    } finally {
      clearTimeout(silent);
      cut.abort();
    }
    return this.hooks.isEnded();
  }
}

// The stream is forgotten, or its events are: asking again cannot help. Others (429, 503, unreachable) may.
const isGone = (status: number): boolean => status === 404 || status === 410 || status === 400 || status === 405;

// Ends an answer that the node keeps. An unknown stream has ended already.
export async function endStream(id: string): Promise<void> {
  try {
    await ask("DELETE", `/v1/streams/${encodeURIComponent(id)}`, undefined, { timeout: END_MS });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
}
