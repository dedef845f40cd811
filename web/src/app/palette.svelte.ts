// The commands that Ctrl-K lists. Views add theirs while they are shown.
import { untrack } from "svelte";
import { go, VIEWS } from "./router.svelte";
import { theme } from "./theme.svelte";

export interface Command { id: string; title: string; hint?: string; run: () => void }

const LISTED_MAX = 12;

class Palette {
  isOpen = $state(false);
  private sources = $state.raw<(() => Command[])[]>([fixed]);

  show(): void { this.isOpen = true; }

  // Returns the function that takes the commands away again, as effects want it.
  add(source: () => Command[]): () => void {
    this.sources = [...untrack(() => this.sources), source];
    return () => { this.sources = this.sources.filter((other) => other !== source); };
  }

  // The commands in whose title the words occur, in order.
  find(words: string): Command[] {
    const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
    return this.sources.flatMap((source) => source())
      .filter(({ title }) => wanted.every((word) => title.toLowerCase().includes(word))).slice(0, LISTED_MAX);
  }
}

function fixed(): Command[] {
  const views = VIEWS.map((view, at) => ({
    id: `view.${view}`, title: `Go to ${view[0].toUpperCase()}${view.slice(1)}`, hint: `Alt ${at + 1}`, run: () => go(view),
  }));
  const themes = (["auto", "light", "dark"] as const).map((name) => ({
    id: `theme.${name}`, title: `Theme: ${name}`, run: () => theme.set(name),
  }));
  return [...views, ...themes];
}

export const palette = new Palette();
