// Check: the node computes an answer once more, as one reading of it, and says whether every token is the same.
import { json } from "../../lib/api";
import { catalog } from "./catalog.svelte";
import type { Tree } from "./tree";
import type { Message } from "./types";
import { requestOf } from "./world";

const CHECK_MS = 300_000;

export interface Verdict { same: boolean; first_difference?: number; ranks?: number; seconds?: number }

export async function checkAnswer(answer: Message, tree: Tree, texts: ReadonlyMap<string, string>): Promise<Verdict> {
  const kind = await catalog.learn(answer.model!);
  const { body } = requestOf(answer, kind.isChat, tree, texts);
  const { stream: _, stream_options: __, ...request } = body;
  return json<Verdict>("POST", "/v1/verify", { ...request, receipt: answer.receipt, answer: answer.text.slice(answer.continued_at ?? 0) },
    { timeout: CHECK_MS });
}
