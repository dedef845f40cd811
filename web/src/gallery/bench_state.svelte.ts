// Content for browser tests: `window.lockstepBench` sets it, #/gallery/bench shows it.
import { flushSync, tick } from "svelte";
import type { Seam } from "../answer/types";

interface BenchMessage {
  text: string; isGrowing: boolean; seams?: Seam[];
  isEverywhere?: boolean; // not as an answer, but in every other part
}

class Bench {
  messages = $state.raw<BenchMessage[]>([]);

  show(...messages: BenchMessage[]): void {
    this.messages = messages;
    flushSync();
  }

  // Gives the last message another text; done when it is drawn, if frames are microtasks.
  async grow(text: string, isGrowing = true): Promise<void> {
    this.messages = [...this.messages.slice(0, -1), { ...this.messages.at(-1), text, isGrowing }];
    flushSync();
    await tick();
    await tick();
  }
}

export const bench = new Bench();

declare global {
  interface Window { lockstepBench?: Bench }
}
