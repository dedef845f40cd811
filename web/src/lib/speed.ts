// Tokens a second over the last seconds; 0 once nothing has come for so long.
const KEPT_MAX = 4_096;
const LEAST_MS = 200; // over a shorter time a rate says nothing

export class Speed {
  private times: number[] = [];
  private hasBegun = false;

  constructor(private readonly windowMs = 2_000) {}

  add(now: number): void {
    this.hasBegun = true;
    this.times.push(now);
    if (this.times.length > KEPT_MAX) this.forget(now);
  }

  private forget(now: number): void {
    const first = this.times.findIndex((time) => time > now - this.windowMs);
    this.times = first < 0 ? [] : this.times.slice(first);
  }

  // undefined while there are too few tokens to say.
  at(now: number): number | undefined {
    this.forget(now);
    if (this.times.length === 0) return this.hasBegun ? 0 : undefined;
    const took = now - this.times[0];
    return took < LEAST_MS ? undefined : (this.times.length * 1000) / took;
  }
}
