// Gives a running answer its model and its request from the stored branch, and stores its progress.
import type { History } from "../store/history";
import type { Tabs } from "../store/tabs";
import { catalog } from "../../cluster/catalog.svelte";
import { live } from "../../cluster/live.svelte";
import { answerBody, answerRequest, type AnswerRequest } from "./request";
import type { AnswerWorld, Phase } from "./running_answer.svelte";
import { pathTo, treeOf, type Tree } from "./tree";
import type { Conversation, Message } from "./types";

interface Loaded { conversation: Conversation; tree: Tree; texts: ReadonlyMap<string, string> }

export function answerWorld(history: History, tabs: Tabs, shown: (conversation: string) => Loaded | undefined,
    finished: (message: Message) => void): AnswerWorld {
  const load = async (id: string): Promise<Loaded> => {
    const here = shown(id);
    if (here) return here;
    const [conversation, messages, files] = await Promise.all([history.conversation(id), history.messages(id), history.attachments(id)]);
    if (!conversation) throw new Error("The conversation has been deleted.");
    return { conversation, tree: treeOf(messages), texts: new Map(files.map((file) => [file.id, file.text])) };
  };
  return {
    prepare: (message, phase, signal) => prepare(message, load, phase, signal),
    async store(message) {
      await history.write([{ store: "messages", put: message }]);
      tabs.tell({ kind: "answer", message });
    },
    claim: (id) => tabs.claim(id),
    energy: (model) => live.energyOf(model),
    finished(message) {
      tabs.release(message.id);
      finished(message);
    },
  };
}

// Changes the body that the message has: the name of a model that was loaded just now may be another one, and only then is it known
// whether the model has a template.
async function prepare(message: Message, load: (id: string) => Promise<Loaded>, phase: (phase: Phase) => void, signal: AbortSignal):
    Promise<AnswerRequest> {
  phase("loading");
  const model = (message.model = await catalog.wake(message.model!, signal));
  phase("loading"); // Now under the name that the status has.
  await catalog.ready(model, signal);
  const isChat = await catalog.learn(model).then((kind) => kind.isChat, () => true);
  signal.throwIfAborted();
  const { conversation, tree, texts } = await load(message.conversation);
  message.body = { ...answerBody(model, conversation.settings, isChat, seedOf(message)), model };
  message.system = conversation.settings.system;
  return requestOf(message, isChat, tree, texts);
}

const seedOf = (message: Message): number | undefined => (typeof message.body?.seed === "number" ? message.body.seed : undefined);

// The request that makes the answer `message`, from the branch above it.
export function requestOf(message: Message, isChat: boolean, tree: Tree, texts: ReadonlyMap<string, string>): AnswerRequest {
  const path = pathTo(tree, message.parent);
  const continued = message.continued_at ? { ...message, text: message.text.slice(0, message.continued_at) } : undefined;
  return answerRequest(message.body ?? {}, isChat, path, message.system ?? "", texts, continued);
}
