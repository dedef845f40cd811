// Whether the text of a button was copied just now. Made while a component is made, and ends with it.
import { copyText } from "../lib/clipboard";
import { toasts } from "./toasts.svelte";

export class Copied {
  is = $state(false);
  private timer: ReturnType<typeof setTimeout> | undefined;

  // `shownMs`: how long it is said; without it until `forget`.
  constructor(private readonly shownMs?: number) {
    $effect(() => () => clearTimeout(this.timer));
  }

  async copy(text: string): Promise<void> {
    try {
      await copyText(text);
      this.is = true;
      clearTimeout(this.timer);
      if (this.shownMs !== undefined) this.timer = setTimeout(() => this.forget(), this.shownMs);
    } catch (error) {
      toasts.error(error);
    }
  }

  forget(): void { this.is = false; }
}
