// The cost of a request before it is sent: POST /v1/chat/completions?plan=1, on nodes whose session says that they answer it.
import { json } from "../../lib/api";
import { count, figure } from "../../lib/format";
import { answerBody, answerRequest, type Texts } from "./request";
import type { Settings } from "./settings";
import type { Message } from "./types";

const DEBOUNCE_MS = 600;

interface Plan { prompt_tokens: number; cached?: { memory?: number; disk?: number }; first_token_s?: number; joules?: number }

export class CostAsker {
  line = $state("");
  private number = 0;

  clear(): undefined {
    this.number += 1;
    this.line = "";
  }

  ask(model: string, settings: Settings, path: readonly Message[], text: string, files: { id: string; name: string; text: string }[],
      texts: Texts): () => void {
    const number = ++this.number;
    const timer = setTimeout(() => {
      const draft: Message = { id: "", conversation: "", parent: null, role: "user", text, created_ms: 0,
        attachments: files.map((file) => ({ id: file.id, name: file.name, length: file.text.length })) };
      const all = new Map([...texts, ...files.map((file) => [file.id, file.text] as const)]);
      this.plan(model, settings, [...path, draft], all).then((line) => { if (number === this.number) this.line = line; },
        () => { if (number === this.number) this.line = ""; }); // Only a comfort: a node that refuses it refuses nothing else.
    }, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }

  private async plan(model: string, settings: Settings, path: readonly Message[], texts: Texts): Promise<string> {
    const { body } = answerRequest(answerBody(model, settings, true), true, path, settings.system, texts);
    const plan = await json<Plan>("POST", "/v1/chat/completions?plan=1", { ...body, stream: false, stream_options: undefined });
    const reused = (plan.cached?.memory ?? 0) + (plan.cached?.disk ?? 0);
    return [`${count(reused)} reused + ${count(plan.prompt_tokens - reused)} new`,
      plan.first_token_s === undefined ? "" : `first in ${figure(plan.first_token_s)} s`,
      plan.joules === undefined ? "" : `${figure(plan.joules)} J`].filter((part) => part !== "").join(", ");
  }
}
