// The fates of all loaded models: on the desk as it is, and once more for the loss of each machine.
import { fateOf, requestOf, type Desk, type Fate } from "./desk";
import { askPlan } from "./plan";

export class Fates {
  // By model and the machine that is lost, "" for none.
  found = $state.raw(new Map<string, Fate>());
  asked = $state(0);
  done = $state(0);
  private current: AbortController | undefined;

  static key(model: string, without: string): string { return `${model}\n${without}`; }
  get isAsking(): boolean { return this.done < this.asked; }
  of(model: string, without = ""): Fate | undefined { return this.found.get(Fates.key(model, without)); }

  forget(): void {
    this.current?.abort();
    this.found = new Map();
    this.asked = this.done = 0;
  }

  async ask(desk: Desk, models: string[], losses: string[]): Promise<void> {
    this.forget();
    const current = new AbortController();
    this.current = current;
    const pairs = models.flatMap((model) => losses.map((without) => [model, without] as const));
    this.asked = pairs.length;
    await Promise.all(pairs.map(async ([model, without]) => {
      // The limits of the form are for the model of the form only.
      const fate = await askPlan(requestOf(desk, model, without, model === desk.model.trim()), current.signal)
        .then((plan) => fateOf(plan, ""), (error: Error) => fateOf(undefined, error.message));
      if (current.signal.aborted) return;
      this.found = new Map(this.found).set(Fates.key(model, without), fate);
      this.done += 1;
    }));
  }
}
