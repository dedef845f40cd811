// Unsent text of each conversation; "" is the conversation that does not exist yet.
import type { Draft, History } from "../store/history";

const KEEP_MS = 300;

export class DraftKeeper {
  private pending: Draft | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly history: () => History) {
    addEventListener("pagehide", () => this.flush());
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.flush(); });
  }

  async read(conversation: string): Promise<Draft | undefined> {
    this.flush();
    return this.history().draft(conversation);
  }

  keep(draft: Draft): void {
    if (this.pending && this.pending.conversation !== draft.conversation) this.flush();
    this.pending = draft;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), KEEP_MS);
  }

  drop(conversation: string): void {
    if (this.pending?.conversation === conversation) this.pending = undefined;
    void this.history().write([{ store: "drafts", remove: conversation }]);
  }

  private flush(): void {
    clearTimeout(this.timer);
    const { pending } = this;
    this.pending = undefined;
    if (!pending) return;
    const isEmpty = pending.text === "" && pending.attachments.length === 0;
    void this.history().write([isEmpty ? { store: "drafts", remove: pending.conversation } : { store: "drafts", put: pending }]);
  }
}
