// Export and import of conversations as files of the browser.
import type { Change } from "../store/backend";
import type { History } from "../store/history";
import { fromLines, toLines, toMarkdown } from "../store/transfer";
import type { Conversation } from "./types";

const IMPORT_BYTES_MAX = 256 << 20;
const KEPT_MS = 60_000; // how long the browser may take to save a file

type Kind = "md" | "jsonl";

async function textOfExport(history: History, list: readonly Conversation[], kind: Kind): Promise<string> {
  if (kind === "jsonl") {
    const wholes: Change[][] = [];
    for (const { id } of list) wholes.push(await history.whole(id));
    return toLines(wholes.flat());
  }
  const texts: string[] = [];
  for (const one of list) texts.push(toMarkdown(one, await history.messages(one.id), await history.attachments(one.id)));
  return texts.join("\n---\n\n");
}

export async function exportOne(history: History, conversation: Conversation, kind: Kind): Promise<void> {
  const name = conversation.title.replace(/[^\p{L}\p{N} _-]/gu, "").trim().slice(0, 60) || "conversation";
  save(`${name}.${kind}`, await textOfExport(history, [conversation], kind));
}

export async function exportWhole(history: History, list: readonly Conversation[], kind: Kind): Promise<void> {
  save(`lockstep-history-${new Date().toISOString().slice(0, 10)}.${kind}`, await textOfExport(history, list, kind));
}

function save(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

// Returns how many conversations were added.
export async function importFile(file: File,
    chat: { list: readonly Conversation[]; add(changes: Change[]): Promise<void> }): Promise<number> {
  if (file.size > IMPORT_BYTES_MAX) throw new Error(`${file.name} is larger than ${IMPORT_BYTES_MAX >> 20} MiB.`);
  const here = new Set(chat.list.map((conversation) => conversation.id));
  const changes = fromLines(await file.text(), (id) => here.has(id));
  await chat.add(changes);
  return changes.filter((change) => change.store === "conversations").length;
}
