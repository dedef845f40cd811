// Commands of Ctrl-K while the chat is shown.
import type { Command } from "../app/palette.svelte";
import { go } from "../app/router.svelte";
import { toasts } from "../app/toasts.svelte";
import { copyText } from "../lib/clipboard";
import { chat } from "./chat.svelte";
import { catalog } from "../cluster/catalog.svelte";
import { canContinue } from "./engine/figures";

export function commandsOf(view: { edit: (message: string) => void; settings: () => void }): Command[] {
  const answer = chat.path.findLast((message) => message.role === "assistant");
  const question = chat.path.findLast((message) => message.role === "user");
  const thread = chat.thread;
  const commands: (Command | false | undefined)[] = [
    { id: "chat.new", title: "New conversation", hint: "Ctrl Shift O", run: () => go("chat") },
    { id: "chat.settings", title: "Settings of the conversation", run: view.settings },
    chat.isBusy && { id: "chat.stop", title: "Stop the answer", hint: "Esc", run: () => void chat.stop().catch(toasts.error) },
    answer && { id: "chat.copy", title: "Copy the last answer", run: () => void copyText(answer.text).catch(toasts.error) },
    answer && answer.state !== "running" && { id: "chat.again", title: "Answer again",
      run: () => void chat.regenerate(answer).catch(toasts.error) },
    answer && canContinue(answer) && { id: "chat.continue", title: "Continue the answer",
      run: () => void chat.continueAnswer(answer).catch(toasts.error) },
    question && { id: "chat.edit", title: "Edit the last message", hint: "↑ in the empty field", run: () => view.edit(question.id) },
    thread && { id: "chat.pin", title: thread.conversation.pinned ? "Unpin the conversation" : "Pin the conversation",
      run: () => void chat.change({ pinned: !thread.conversation.pinned }).catch(toasts.error) },
    thread && { id: "chat.delete", title: "Delete the conversation", run: () => {
      go("chat");
      chat.removeConversation(thread.conversation.id).catch(toasts.error);
    } },
  ];
  const models = catalog.loaded.map(({ name }) => ({ id: `chat.model.${name}`, title: `Model: ${name}`,
    run: () => chat.setModels([name]) }));
  const conversations = chat.list.map(({ id, title }) => ({ id: `chat.open.${id}`, title, hint: "conversation", run: () => go("chat",
    id) }));
  return [...commands.filter((command) => !!command), ...models, ...conversations];
}
