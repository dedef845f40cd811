// The first-run card's state: a story is told, a plug is pulled, and the same story is asked for once more and compared.
import { live } from "../cluster/live.svelte";
import { json } from "../lib/api";
import { Speed } from "../lib/speed";
import { firstDifference, tell, wrongTokens, type Difference, type Listener, type Seam, type Told } from "./telling";

type Phase = "ready" | "telling" | "told" | "checking" | "failed";
export type Verdict = { kind: "same" } | { kind: "different"; at: Difference };

const PULL_AFTER = 12; // tokens: then there is a text to wait for
const SPEED_MS = 250;

export class Story {
  prompt = $state("Once upon a time");
  phase = $state<Phase>("ready");
  text = $state("");
  tokens = $state(0);
  rate = $state(0);
  pulledRank = $state<number | undefined>(undefined); // until its successor is at work
  seam = $state.raw<(Seam & { at: number }) | undefined>(undefined); // `at`: characters of the text before it
  verdict = $state.raw<Verdict | undefined>(undefined);
  checked = $state(0); // tokens of the second telling
  problem = $state("");
  plugs = $state(0);
  lost = $state(0);
  wrong = $state(0);

  private end: AbortController | undefined;
  private killing: Promise<void> | undefined;
  private wanted: number | undefined; // the rank whose plug is to be pulled
  private restarts = 0; // of the model's group, as the status counts them

  readonly isPulling = $derived(this.phase === "telling" && this.pulledRank !== undefined);
  readonly isBusy = $derived(this.phase === "telling" || this.phase === "checking");

  // Tells the story. If a worker is lost on the way by `pull`, the same story is then asked for once more and compared.
  async run(model: string): Promise<void> {
    this.stop();
    const end = (this.end = new AbortController());
    const prompt = this.prompt;
    Object.assign(this, { phase: "telling", text: "", tokens: 0, rate: 0, seam: undefined, verdict: undefined, problem: "" });
    this.killing = undefined;
    const speed = new Speed();
    const ticks = setInterval(() => { this.rate = speed.at(performance.now()) ?? 0; }, SPEED_MS);
    try {
      const told = await tell(model, prompt, this.listener(speed), end.signal);
      await this.killing;
      if (this.killing && this.problem === "") await this.check(model, prompt, told, end.signal);
      this.phase = "told";
    } catch (error) {
      if (end.signal.aborted) return;
      if (this.killing && this.phase === "telling") this.lost += 1;
      this.phase = "failed";
      this.problem = error instanceof Error ? error.message : String(error);
    } finally {
      clearInterval(ticks);
      if (this.end === end) {
        this.rate = 0;
        this.pulledRank = this.wanted = undefined;
      }
    }
  }

  // Kills a worker of the story that is being told, or of a new one, once there is a text to wait for.
  async pull(model: string, rank: number): Promise<void> {
    const running = this.phase === "telling" ? undefined : this.run(model);
    this.wanted = rank;
    this.killIfDue();
    await running;
  }

  private listener(speed: Speed): Listener {
    return {
      token: (token) => {
        speed.add(performance.now());
        this.text += token;
        this.tokens += 1;
        if (this.seam?.at === -1) this.seam = { ...this.seam, at: this.text.length - token.length };
        this.killIfDue();
      },
      pause: () => { this.pulledRank ??= 0; },
      resume: (seam) => {
        this.pulledRank = undefined;
        this.seam = { ...seam, at: -1 };
      },
    };
  }

  private killIfDue(): void {
    if (this.wanted === undefined || this.killing || this.tokens < PULL_AFTER) return;
    this.killing = this.kill(this.wanted);
  }

  // A group that has been formed again is at work, even if the stream does not say so.
  see(restarts: number, state: string): void {
    if (this.pulledRank !== undefined && restarts > this.restarts && state === "ready") this.pulledRank = undefined;
    if (this.pulledRank === undefined) this.restarts = restarts;
  }

  private async kill(rank: number): Promise<void> {
    this.pulledRank = rank;
    try {
      await json("POST", "/demo/kill", { rank });
      this.plugs += 1;
    } catch (error) {
      this.pulledRank = undefined;
      this.problem = (error as Error).message;
    }
  }

  private async check(model: string, prompt: string, told: Told, signal: AbortSignal): Promise<void> {
    this.phase = "checking";
    this.checked = 0;
    const again = await tell(model, prompt, { token: () => { this.checked += 1; }, pause: () => {}, resume: () => {} }, signal);
    const at = firstDifference(again, told);
    this.wrong += wrongTokens(again, told);
    this.verdict = at ? { kind: "different", at } : { kind: "same" };
  }

  stop(): void {
    this.end?.abort();
    this.end = this.killing = undefined;
    this.pulledRank = this.wanted = undefined;
    if (this.isBusy) this.phase = this.text === "" ? "ready" : "told";
  }
}

// The model of the card: the first one that is loaded.
export const storyModel = (): string => (live.ready[0] ?? live.models[0])?.name ?? "";
