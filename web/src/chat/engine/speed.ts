// Tokens a second over the last seconds; 0 once nothing has come for so long.
const WINDOW_MS = 3_000;

export class Speed {
  private times: number[] = [];

  add(now: number): void {
    this.times.push(now);
    if (this.times.length > 4_096) this.forget(now);
  }

  private forget(now: number): void {
    const first = this.times.findIndex((time) => time > now - WINDOW_MS);
    this.times = first < 0 ? [] : this.times.slice(first);
  }

  // undefined while there are too few tokens to say.
  at(now: number): number | undefined {
    const had = this.times.length > 0;
    this.forget(now);
    if (this.times.length === 0) return had ? 0 : undefined;
    const took = now - this.times[0];
    return took < 200 ? undefined : (this.times.length * 1000) / took;
  }
}
