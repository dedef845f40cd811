// Conversations as files: JSON lines that can be read in again, and Markdown for people.
import { pathTo, treeOf } from "../engine/tree";
import { freshId, type Conversation, type Message } from "../engine/types";
import type { Change } from "./backend";
import type { StoredAttachment } from "./history";
import { cleanConversation, migrated, VERSION, type StoredRecord, type StoreName } from "./schema";

const FORMAT = "lockstep.chat";
const KINDS: Record<string, StoreName> = { conversation: "conversations", message: "messages", attachment: "attachments" };

export function toLines(changes: readonly Change[]): string {
  const kindOf = Object.fromEntries(Object.entries(KINDS).map(([kind, store]) => [store, kind]));
  const records = changes.flatMap((change) => ("put" in change && kindOf[change.store] ? [{ kind: kindOf[change.store],
    ...change.put }] : []));
  return [{ format: FORMAT, version: VERSION }, ...records].map((line) => JSON.stringify(line)).join("\n") + "\n";
}

// The records of a file as new ones: a conversation that is here already stays as it is, and the file's is added as another one.
// Throws Error with a sentence for a file of another kind.
export function fromLines(text: string, isHere: (conversation: string) => boolean): Change[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const [head, ...records] = lines.map((line, at) => parsed(line, at + 1));
  if (head?.format !== FORMAT) throw new Error("This file is not an export of lockstep: its first line does not say so.");
  const version = Number(head.version);
  if (!(version >= 1 && version <= VERSION)) throw new Error("This export was made by a newer lockstep. Update the node first.");
  const names = new Map<string, string>();
  const named = (id: unknown): unknown => (typeof id === "string" ? names.get(id) ?? id : id);
  for (const { kind, id } of records) if (kind === "conversation" && isHere(id as string)) names.set(id as string, freshId());
  for (const { kind, id, conversation } of records) {
    if (kind !== "conversation" && names.has(conversation as string)) names.set(id as string, freshId());
  }
  return records.flatMap(({ kind, ...record }) => {
    const store = KINDS[kind as string];
    const old = store && migrated(store, record, version);
    return old && typeof old.id === "string" ? [{ store, put: renamed(store, old, named) }] : [];
  });
}

function parsed(line: string, number: number): StoredRecord {
  try {
    const value = JSON.parse(line) as unknown;
    if (typeof value === "object" && value !== null) return value as StoredRecord;
  } catch {
    // The sentence below says it.
  }
  throw new Error(`Line ${number} of the file is not a JSON object.`);
}

function renamed(store: StoreName, record: StoredRecord, named: (id: unknown) => unknown): StoredRecord {
  if (store === "conversations") return cleanConversation({ ...record, id: named(record.id), leaf: named(record.leaf) });
  const owned = { ...record, id: named(record.id), conversation: named(record.conversation) };
  if (store === "attachments") return owned;
  const { running, stream, ...message } = owned as StoredRecord;
  const files = (message.attachments as { id: string }[] | undefined)?.map((file) => ({ ...file, id: named(file.id) }));
  return { ...message, parent: named(message.parent) ?? null, text: typeof message.text === "string" ? message.text : "",
    role: message.role === "assistant" ? "assistant" : "user", ...(files ? { attachments: files } : {}),
    ...(message.state === "running" ? { state: "cut", note: "The export was made while this answer ran." } : {}) };
}

// The branch that is shown, as people read it.
export function toMarkdown(conversation: Conversation, messages: Message[], files: StoredAttachment[]): string {
  const texts = new Map(files.map((file) => [file.id, file.text]));
  const parts = [`# ${conversation.title || "Conversation"}`];
  if (conversation.settings.system.trim() !== "") parts.push("## System", conversation.settings.system);
  for (const message of pathTo(treeOf(messages), conversation.leaf)) {
    parts.push(message.role === "user" ? "## You" : `## ${message.model ?? "Answer"}`);
    for (const { id, name } of message.attachments ?? []) parts.push(`### ${name}`, "````", texts.get(id) ?? "", "````");
    for (const call of message.calls ?? []) parts.push(`Call of \`${call.name}\`: \`${call.arguments}\``, call.result ?? "");
    if (message.text !== "") parts.push(message.text);
  }
  return parts.filter((part) => part !== "").join("\n\n") + "\n";
}
