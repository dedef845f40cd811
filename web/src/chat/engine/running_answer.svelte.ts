// One answer while it is written: reads its stream, shows it once a frame, stores how far it has come, and stops when told to.
import { ApiError } from "../../lib/api";
import { Speed } from "../../lib/speed";
import { oncePerFrame } from "./frame";
import { endStream, KeptStream, type StreamEnd } from "./kept_stream";
import { placeOf, queueLook } from "./queue_look";
import { AnswerReducer, type Progress } from "./reducer";
import type { AnswerRequest } from "./request";
import type { Message } from "./types";

const STORE_MS = 1_000;
const TICK_MS = 500;
const SPEED_MS = 3_000; // the last seconds, for the rate
const PLACE_AFTER_MS = 1_000; // an answer that waits for longer asks for its place in the queue

export type Phase = "queued" | "loading" | "sent" | "prompt" | "text";

export interface Show {
  phase: Phase; progress?: Progress; paused?: string; lost?: string; place?: number; tokens_s?: number; tokens: number; waited_s: number;
}

// The surroundings of a running answer. `prepare` makes the model ready and builds the request.
export interface AnswerWorld {
  prepare(message: Message, phase: (phase: Phase) => void, signal: AbortSignal): Promise<AnswerRequest>;
  store(message: Message): Promise<void>;
  claim(message: string): boolean; // false: another tab writes it now
  finished(message: Message): void;
  // For an answer of the model that begins now: when it has just ended, the joules of its last `computed_ms`, if they were measured.
  energy(model: string): (computed_ms: number) => number | undefined;
}

export class RunningAnswer {
  message = $state.raw<Message>() as Message;
  show = $state.raw<Show>({ phase: "queued", tokens: 0, waited_s: 0 });

  private readonly abort = new AbortController();
  private readonly draft: Message;
  private readonly reducer: AnswerReducer;
  private readonly speed = new Speed(SPEED_MS);
  private readonly began: number;
  private readonly publish = oncePerFrame(() => this.publishNow());
  private phase: Phase = "queued";
  private lost = "";
  private place: number | undefined;
  private storedAt = 0;
  private joules: ReturnType<AnswerWorld["energy"]> | undefined;
  private isStoring = false;
  private isStopped = false;
  private isLeft = false;

  constructor(message: Message, private readonly world: AnswerWorld) {
    this.draft = { ...message, state: "running", running: 1, times_ms: [...(message.times_ms ?? [])],
      tokens: message.tokens && [...message.tokens], calls: message.calls && [...message.calls] };
    // A stream that is read on goes on with its times where they ended.
    this.began = performance.now() - (message.stream ? message.times_ms?.at(-1) ?? 0 : 0);
    this.reducer = new AnswerReducer(this.draft, this.began);
    this.message = { ...this.draft };
  }

  get id(): string { return this.draft.id; }

  async run(): Promise<void> {
    const tick = setInterval(() => this.tick(), TICK_MS);
    try {
      await this.end(await this.read());
    } catch (error) {
      await this.end({ kind: this.isStopped ? "stopped" : "cut", sentence: (error as Error).message });
    } finally {
      clearInterval(tick);
    }
  }

  private async read(): Promise<StreamEnd> {
    const stream = new KeptStream({
      take: (event) => this.take(event),
      kept: (id) => {
        this.draft.stream = { id, next: 0 };
        this.storeNow();
      },
      next: () => this.draft.stream?.next ?? 0,
      isEnded: () => this.reducer.moment.ended,
      lost: (sentence) => {
        this.lost = sentence;
        this.publish();
      },
    }, this.abort.signal);
    this.abort.signal.throwIfAborted();
    if (this.draft.stream) {
      this.phase = this.draft.text === "" ? "sent" : "text";
      return stream.resume(this.draft.stream.id);
    }
    const request = await this.world.prepare(this.draft, (phase) => {
      this.phase = phase;
      this.publish();
    }, this.abort.signal);
    this.joules = this.world.energy(this.draft.model!);
    this.phase = "sent";
    this.storeNow();
    this.publish();
    return this.begin(stream, request);
  }

  // Some models have no receipts (ranks that round on the wire): those are asked without one.
  private async begin(stream: KeptStream, request: AnswerRequest): Promise<StreamEnd> {
    try {
      return await stream.begin(request);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "no_identity") throw error;
      const { include_receipt: _, ...options } = request.body.stream_options as Record<string, unknown>;
      return stream.begin({ ...request, body: { ...request.body, stream_options: options } });
    }
  }

  private take(event: Parameters<AnswerReducer["take"]>[0]): void {
    const now = performance.now();
    const before = this.reducer.pieces;
    this.reducer.take(event, now);
    if (this.reducer.pieces > before) {
      this.speed.add(now);
      this.phase = "text";
      this.place = undefined;
    } else if (this.reducer.moment.progress && this.phase === "sent") {
      this.phase = "prompt";
    }
    this.publish();
    if (now - this.storedAt > STORE_MS) this.storeNow();
  }

  private publishNow(): void {
    this.message = { ...this.draft };
    this.publishShow();
  }

  private publishShow(): void {
    const { progress, paused } = this.reducer.moment;
    const now = performance.now();
    this.show = { phase: this.phase, progress, paused, lost: this.lost || undefined, place: this.place, tokens: this.reducer.pieces,
      tokens_s: this.speed.at(now), waited_s: (now - this.began) / 1000 };
  }

  private tick(): void {
    this.publishShow();
    if (performance.now() - this.storedAt > STORE_MS) this.storeNow();
    if (this.phase === "sent" && performance.now() - this.began > PLACE_AFTER_MS) void this.askPlace();
  }

  private async askPlace(): Promise<void> {
    try {
      const requests = await queueLook.requests();
      if (this.phase === "sent") this.place = placeOf(requests, this.draft.model, (performance.now() - this.began) / 1000);
    } catch (error) {
      // The place is a comfort; the answer does not need it.
      if (!(error instanceof ApiError || error instanceof DOMException)) throw error;
    }
  }

  private storeNow(): void {
    this.storedAt = performance.now();
    if (!this.world.claim(this.id)) return this.leave();
    if (this.isStoring) return;
    this.isStoring = true;
    void this.world.store({ ...this.draft }).finally(() => { this.isStoring = false; });
  }

  // Stops reading and leaves the answer to the node and to who reads on: another tab, or this page after a reload.
  leave(): void {
    this.isLeft = true;
    this.abort.abort();
  }

  // Stores how far the answer has come, for a page that is about to go.
  keep(): void { void this.world.store({ ...this.draft }); }

  // Ends the answer, in every phase. The text that is there stays.
  async stop(): Promise<void> {
    this.isStopped = true;
    const { stream } = this.draft;
    this.abort.abort();
    if (stream) await endStream(stream.id);
  }

  private async end({ kind, sentence }: StreamEnd): Promise<void> {
    if (this.isLeft && !this.isStopped) return this.world.finished({ ...this.draft });
    const { moment } = this.reducer;
    const { draft } = this;
    const isWhole = kind === "done" && moment.error === undefined;
    const hasText = draft.text !== "" || (draft.reasoning ?? "") !== "" || (draft.calls?.length ?? 0) > 0;
    draft.state = isWhole ? "done" : hasText || kind === "stopped" ? "cut" : "failed";
    draft.note = isWhole ? undefined : kind === "stopped" ? "Stopped." : (moment.error ?? sentence);
    if (kind === "stopped") draft.finish = "stopped";
    if (isWhole && draft.figures && moment.computed_ms !== undefined) draft.figures.joules ??= this.joules?.(moment.computed_ms);
    delete draft.running;
    delete draft.stream;
    this.publishNow();
    await this.world.store({ ...draft });
    this.world.finished({ ...draft });
  }
}
