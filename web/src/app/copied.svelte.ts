// Whether the text of a button was copied just now. Made while a component is made, and ends with it.
import { copyText } from "../lib/clipboard";
import { toasts } from "./toasts.svelte";

export class Copied {
  is = $state(false);
  private number = 0; // of the last copy or forgetting
  private timer: ReturnType<typeof setTimeout> | undefined;

  // `shownMs`: how long it is said; without it until `forget`.
  constructor(private readonly shownMs?: number) {
    $effect(() => () => clearTimeout(this.timer));
  }

  async copy(text: string): Promise<void> {
    const number = ++this.number;
    try {
      await copyText(text);
      if (number !== this.number) return;
      this.is = true;
      clearTimeout(this.timer);
      if (this.shownMs !== undefined) this.timer = setTimeout(() => this.forget(), this.shownMs);
    } catch (error) {
      toasts.error(error);
    }
  }

  // The button has another text now, or it was said for long enough.
  forget(): void {
    this.number += 1;
    this.is = false;
  }
}
