// Runs at most N tasks at a time; the others wait in their order. A task whose signal is aborted while it waits never starts.

export class Lane {
  private running = 0;
  private readonly waiting: { start: () => void; signal?: AbortSignal }[] = [];

  constructor(private readonly width: number) {}

  run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const start = (): void => {
        this.running += 1;
        task().then(resolve, reject).finally(() => {
          this.running -= 1;
          this.next();
        });
      };
      const entry = { start, signal };
      signal?.addEventListener("abort", () => {
        const at = this.waiting.indexOf(entry);
        if (at >= 0) this.waiting.splice(at, 1);
        reject(signal.reason);
      }, { once: true });
      if (signal?.aborted) return reject(signal.reason);
      this.waiting.push(entry);
      this.next();
    });
  }

  private next(): void {
    while (this.running < this.width && this.waiting.length > 0) this.waiting.shift()!.start();
  }
}
