// How much of the context the next request fills, counted by the node with the model's own template.
import { ApiError, json } from "../../lib/api";
import { catalog } from "../../cluster/catalog.svelte";
import { countBody, promptOf, type Texts } from "./request";
import type { Settings } from "./settings";
import type { Message } from "./types";

const DEBOUNCE_MS = 500; // the text has been still for so long
const COUNT_MS = 10_000;

// `isDraft`: the last message of the path is not sent yet.
interface Counted { model: string; settings: Settings; path: readonly Message[]; texts: Texts; isDraft: boolean }

export class Gauge {
  tokens = $state<number | undefined>(undefined);
  isDraft = $state(false); // what was counted
  refusal = $state("");
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort = new AbortController();

  // Counts after a pause in typing; only the newest question is answered. Returns what ends it.
  ask(counted: Counted): () => void {
    const abort = this.fresh();
    this.timer = setTimeout(() => void this.count(counted, abort), DEBOUNCE_MS);
    return () => void this.fresh();
  }

  // Ends what was asked before.
  private fresh(): AbortController {
    clearTimeout(this.timer);
    this.abort.abort();
    return (this.abort = new AbortController());
  }

  private async count(counted: Counted, abort: AbortController): Promise<void> {
    const late = setTimeout(() => abort.abort(), COUNT_MS);
    try {
      const tokens = await lengthOf(counted, abort.signal);
      if (abort.signal.aborted) return;
      this.tokens = tokens;
      this.isDraft = counted.isDraft;
      this.refusal = "";
    } catch (error) {
      if (abort !== this.abort) return;
      this.tokens = undefined;
      this.refusal = error instanceof ApiError ? error.message : "";
    } finally {
      clearTimeout(late);
    }
  }
}

async function lengthOf({ model, settings, path, texts }: Counted, signal: AbortSignal): Promise<number> {
  const { isChat } = await catalog.learn(model);
  if (!isChat) {
    const prompt = promptOf(path, settings.system, texts);
    return prompt === "" ? 0 : (await json<{ tokens: unknown[] }>("POST", "/tokenize", { model, content: prompt, add_special: true },
      { signal })).tokens.length;
  }
  if (path.length === 0) return 0;
  return (await json<{ input_tokens: number }>("POST", "/v1/messages/count_tokens", countBody(model, settings, path, texts), { signal }))
    .input_tokens;
}
