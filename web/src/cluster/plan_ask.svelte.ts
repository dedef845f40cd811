// A plan that follows a form: asked once the form has been still for a moment; a newer question ends the older one. Made while a
// component is made, and ends with it.
import { untrack } from "svelte";
import { askPlan, type Plan, type PlanRequest } from "./plan";

const STILL_MS = 400;

export class PlanAsk {
  plan = $state.raw<Plan | undefined>(undefined);
  refusal = $state("");
  isAsking = $state(false);
  private asked = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private current: AbortController | undefined;

  // `request` is followed as an effect follows it.
  constructor(request: () => PlanRequest | undefined) {
    $effect(() => {
      const wanted = request();
      untrack(() => this.follow(wanted));
    });
    $effect(() => () => this.stop());
  }

  // Asks nothing if the question is the last one; undefined forgets the answer.
  private follow(request: PlanRequest | undefined): void {
    const text = JSON.stringify(request ?? null);
    if (text === this.asked) return;
    this.stop();
    this.asked = text;
    if (request) this.timer = setTimeout(() => void this.ask(request), STILL_MS);
    else [this.plan, this.refusal] = [undefined, ""];
    this.isAsking = request !== undefined;
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.current?.abort();
    this.asked = "";
    this.isAsking = false;
  }

  private async ask(request: PlanRequest): Promise<void> {
    const current = new AbortController();
    this.current = current;
    try {
      this.plan = await askPlan(request, current.signal);
      this.refusal = "";
    } catch (error) {
      if (current.signal.aborted) return;
      [this.plan, this.refusal] = [undefined, (error as Error).message];
    }
    this.isAsking = false;
  }
}
