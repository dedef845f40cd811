// Check: the node computes an answer once more, as one reading of it, and says whether every token is the same.
import { json } from "../../lib/api";
import { catalog } from "../../cluster/catalog.svelte";
import type { Tree } from "./tree";
import type { Message } from "./types";
import { requestOf } from "./world";

const CHECK_MS = 300_000;

// `same`: the model gives this very answer, and the receipt is of it. `first_difference`: the index of a token, from 0.
export interface Verdict { same: boolean; first_difference?: number; matches_receipt?: boolean; ranks?: number; seconds?: number }

export async function checkAnswer(answer: Message, tree: Tree, texts: ReadonlyMap<string, string>): Promise<Verdict> {
  const { isChat } = await catalog.learn(answer.model!);
  const { body } = requestOf(answer, isChat, tree, texts);
  const { stream: _, stream_options: __, ...request } = body;
  const { text: receipt, answer_ids } = answer.receipt!;
  // A text can be cut into tokens in several ways, so the tokens are sent where the node told them.
  const said = answer_ids ? { answer_ids } : { answer: answer.text.slice(answer.continued_at ?? 0) };
  return json<Verdict>("POST", "/v1/verify", { ...request, ...said, receipt, route: isChat ? "chat" : "completions" }, {
    timeout: CHECK_MS });
}
