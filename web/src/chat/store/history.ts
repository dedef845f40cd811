// The history of conversations. Changes that the browser refuses to store stay in memory, with a warning, until it takes them.
import type { Conversation, Message } from "../engine/types";
import { MemoryBackend, type Backend, type Change } from "./backend";
import { cleanConversation, STORES, type StoredRecord, type StoreName } from "./schema";

export interface Draft { conversation: string; text: string; attachments: { id: string; name: string; text: string }[] }
export interface StoredAttachment { id: string; conversation: string; name: string; text: string }

export const ATTACHMENT_LENGTH_MAX = 2 << 20; // characters of one file
export const ATTACHMENTS_LENGTH_MAX = 64 << 20; // of all files in the history
const CONVERSATIONS_FOUND_MAX = 100;

const NO_DATABASE = "This browser keeps no history here (a private window?). Conversations last until this tab is closed.";
const NOT_STORED = "The browser did not store the last changes";
const NO_ROOM = "The browser has no room left for the last changes";
const STILL_HERE = ": they are kept until this tab is closed. Export what you need, or delete conversations to make room.";

export class History {
  warning = "";
  private readonly pending = new Map<string, { change: Change; number: number }>(); // what could not be stored, by store and key
  private writes = 0;

  private constructor(private readonly backend: Backend, readonly isLasting: boolean, private readonly warn: (sentence: string) => void) {}

  // `open` is openDatabase, or a test's.
  static async open(open: () => Promise<Backend>, warn: (sentence: string) => void): Promise<History> {
    try {
      return new History(await open(), true, warn);
    } catch (error) {
      const history = new History(new MemoryBackend(), false, warn);
      const is_refused = error instanceof DOMException || error instanceof ReferenceError || error instanceof TypeError;
      history.setWarning(is_refused ? NO_DATABASE : (error as Error).message);
      return history;
    }
  }

  static inMemory(backend: Backend = new MemoryBackend(), warn: (sentence: string) => void = () => {}): History {
    return new History(backend, true, warn);
  }

  private setWarning(sentence: string): void {
    if (this.warning === sentence) return;
    this.warning = sentence;
    this.warn(sentence);
  }

  private static keyOf(change: Change): string {
    const key = "remove" in change ? change.remove : (change.put as StoredRecord)[STORES[change.store].key] as string;
    return `${change.store}/${key}`;
  }

  // Never rejects: what cannot be stored is kept here, and tried again with the next changes.
  async write(changes: readonly Change[]): Promise<void> {
    const number = ++this.writes;
    const all = [...[...this.pending.values()].map(({ change }) => change), ...changes];
    try {
      await this.backend.write(all);
      // Another write may have begun later and failed meanwhile: what that one holds is still pending.
      for (const key of all.map(History.keyOf)) if ((this.pending.get(key)?.number ?? Infinity) <= number) this.pending.delete(key);
      if (this.isLasting && this.pending.size === 0) this.setWarning("");
    } catch (error) {
      for (const change of changes) {
        const key = History.keyOf(change);
        if ((this.pending.get(key)?.number ?? 0) < number) this.pending.set(key, { change, number });
      }
      const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
      this.setWarning((isFull ? NO_ROOM : NOT_STORED) + STILL_HERE);
    }
  }

  // The records of a store that are pending and fit.
  private kept(store: StoreName, fits: (record: StoredRecord) => boolean): StoredRecord[] {
    const changes = [...this.pending.values()].map(({ change }) => change).filter((change) => change.store === store);
    return changes.flatMap((change) => ("put" in change ? [change.put as StoredRecord] : [])).filter(fits);
  }

  private merged(store: StoreName, stored: StoredRecord[], fits: (record: StoredRecord) => boolean): StoredRecord[] {
    const { key } = STORES[store];
    return [...stored.filter((record) => !this.pending.has(`${store}/${record[key] as string}`)), ...this.kept(store, fits)];
  }

  private async one(store: StoreName, key: string): Promise<StoredRecord | undefined> {
    const change = this.pending.get(`${store}/${key}`)?.change;
    if (change) return "put" in change ? change.put as StoredRecord : undefined;
    return this.backend.get(store, key);
  }

  async conversations(): Promise<Conversation[]> {
    const records = this.merged("conversations", await this.backend.all("conversations"), () => true);
    return records.map((record) => cleanConversation(record) as unknown as Conversation);
  }

  async conversation(id: string): Promise<Conversation | undefined> {
    const record = await this.one("conversations", id);
    return record && (cleanConversation(record) as unknown as Conversation);
  }

  async messages(conversation: string): Promise<Message[]> {
    const stored = await this.backend.find("messages", "conversation", conversation);
    return this.merged("messages", stored, (record) => record.conversation === conversation) as unknown as Message[];
  }

  async running(): Promise<Message[]> {
    const stored = await this.backend.find("messages", "running", 1);
    return this.merged("messages", stored, (record) => record.running === 1) as unknown as Message[];
  }

  async attachments(conversation: string): Promise<StoredAttachment[]> {
    const stored = await this.backend.find("attachments", "conversation", conversation);
    return this.merged("attachments", stored, (record) => record.conversation === conversation) as unknown as StoredAttachment[];
  }

  // Characters of all files in the history.
  async attachedLength(): Promise<number> {
    let length = 0;
    await this.backend.each("attachments", (record) => {
      length += (record.text as string).length;
      return true;
    });
    return length;
  }

  async draft(conversation: string): Promise<Draft | undefined> {
    return await this.one("drafts", conversation) as Draft | undefined;
  }

  // Ids of conversations in whose texts all of the words occur, each with some text around the first one.
  async search(words: string, isCancelled: () => boolean): Promise<Map<string, string>> {
    const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const found = new Map<string, string>();
    const visit = (record: StoredRecord): boolean => {
      const { conversation, text } = record as { conversation: string; text: string };
      const lower = typeof text === "string" && !found.has(conversation) ? text.toLowerCase() : "";
      if (lower !== "" && wanted.every((word) => lower.includes(word))) found.set(conversation, around(text, lower.indexOf(wanted[0])));
      return !isCancelled() && found.size < CONVERSATIONS_FOUND_MAX;
    };
    if (wanted.length === 0) return found;
    if (!this.kept("messages", () => true).every(visit)) return found;
    await this.backend.each("messages", visit);
    return found;
  }

  // Everything of one conversation, for export, removal and undo.
  async whole(id: string): Promise<Change[]> {
    const conversation = await this.conversation(id);
    const puts = (store: StoreName, records: object[]): Change[] => records.map((put) => ({ store, put }));
    return [...puts("conversations", conversation ? [conversation] : []), ...puts("messages", await this.messages(id)),
      ...puts("attachments", await this.attachments(id))];
  }
}

const AROUND = 40;

function around(text: string, at: number): string {
  const piece = text.slice(Math.max(0, at - AROUND), at + 2 * AROUND).replace(/\s+/g, " ").trim();
  return `${at > AROUND ? "…" : ""}${piece}${at + 2 * AROUND < text.length ? "…" : ""}`;
}
