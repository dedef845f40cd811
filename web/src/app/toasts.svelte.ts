// Short messages at the edge of the page. An error stays until it is closed; others go after some seconds.

interface Toast { id: number; text: string; kind: "note" | "error"; action?: { title: string; run: () => void } }

const NOTE_MS = 5_000;
const OFFER_MS = 15_000;
const TOASTS_MAX = 4;

class Toasts {
  list = $state.raw<Toast[]>([]);
  private next = 0;

  note(text: string): void {
    const id = this.add(text, "note");
    setTimeout(() => this.close(id), NOTE_MS);
  }

  // A message with a button, such as Undo.
  offer(text: string, title: string, run: () => void): void {
    const id = this.add(text, "note", { title, run });
    setTimeout(() => this.close(id), OFFER_MS);
  }

  // Bound, so that it can be given to `catch`.
  readonly error = (error: unknown): void => {
    this.add(error instanceof Error ? error.message : String(error), "error");
  };

  close(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }

  private add(text: string, kind: Toast["kind"], action?: Toast["action"]): number {
    this.list = [...this.list, { id: this.next, text, kind, action }].slice(-TOASTS_MAX);
    return this.next++;
  }
}

export const toasts = new Toasts();
