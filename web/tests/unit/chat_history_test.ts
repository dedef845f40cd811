import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { NO_SETTINGS } from "../../src/chat/engine/settings";
import type { Conversation, Message } from "../../src/chat/engine/types";
import { MemoryBackend, type Change } from "../../src/chat/store/backend";
import { History } from "../../src/chat/store/history";
import { migrated, type Migration } from "../../src/chat/store/schema";
import { Tabs } from "../../src/chat/store/tabs";
import { fromLines, toLines, toMarkdown } from "../../src/chat/store/transfer";
import type { Store as LeaseStore } from "../../src/lib/storage";

// Its listeners would keep the test running.
delete (globalThis as { BroadcastChannel?: unknown }).BroadcastChannel;

const conversation = (id: string, more: Partial<Conversation> = {}): Conversation => ({ id, title: `title ${id}`, created_ms: 1,
  updated_ms: 2,
  pinned: false, leaf: null, models: ["m"], settings: NO_SETTINGS, ...more });
const message = (id: string, owner: string, more: Partial<Message> = {}): Message => ({ id, conversation: owner, parent: null, role: "user",
  text: `text ${id}`, created_ms: 1, ...more });
const putAll = (...records: (Conversation | Message)[]): Change[] => records.map((put) => ({
  store: "conversation" in put ? "messages" : "conversations", put }));

test("what was written is read again", async () => {
  const history = History.inMemory();
  await history.write(putAll(conversation("c"), message("m1", "c"), message("m2", "other"), message("m3", "c", { running: 1 })));
  assert.deepEqual(await history.conversations(), [conversation("c")]);
  assert.deepEqual((await history.messages("c")).map((one) => one.id), ["m1", "m3"]);
  assert.deepEqual((await history.running()).map((one) => one.id), ["m3"]);
});

class FullBackend extends MemoryBackend {
  isFull = true;
  override async write(changes: readonly Change[]): Promise<void> {
    if (this.isFull) throw new DOMException("full", "QuotaExceededError");
    return super.write(changes);
  }
}

test("a full browser loses nothing: it is read from memory, said, and stored once there is room", async () => {
  const backend = new FullBackend();
  let warning = "";
  const history = History.inMemory(backend, (sentence) => { warning = sentence; });
  backend.isFull = false;
  await history.write(putAll(conversation("c"), message("old", "c"), message("gone", "c")));
  backend.isFull = true;
  await history.write([...putAll(conversation("c", { title: "new" }), message("m", "c")), { store: "messages", remove: "gone" }]);
  assert.match(warning, /no room/);
  assert.equal((await history.conversations())[0].title, "new");
  assert.equal((await history.conversation("c"))!.title, "new");
  assert.deepEqual((await history.messages("c")).map((one) => one.id), ["old", "m"]);
  assert.equal((await history.search("text m", () => false)).size, 1);
  backend.isFull = false;
  await history.write(putAll(message("m4", "c")));
  assert.equal(warning, "");
  assert.deepEqual((await backend.all("messages")).map((one) => one.id), ["old", "m", "m4"]);
});

test("a write that ends after another one has failed does not forget what that one could not store", async () => {
  const backend = new FullBackend();
  backend.isFull = false;
  let end!: () => void;
  const slow = new Promise<void>((resolve) => { end = resolve; });
  const { write } = backend;
  backend.write = async (changes) => {
    if (changes.some((change) => change.store === "drafts")) await slow;
    return write.call(backend, changes);
  };
  const history = History.inMemory(backend);
  const draft = history.write([{ store: "drafts", put: { conversation: "", text: "x", attachments: [] } }]);
  backend.isFull = true;
  await history.write(putAll(message("m", "c")));
  backend.isFull = false;
  end();
  await draft;
  assert.deepEqual((await history.messages("c")).map((one) => one.id), ["m"]);
  await history.write([]);
  assert.deepEqual((await backend.all("messages")).map((one) => one.id), ["m"]);
});

test("an older change that could not be stored does not replace a newer one that was", async () => {
  const backend = new FullBackend();
  let fail!: () => void;
  const late = new Promise<void>((resolve) => { fail = resolve; });
  const write = MemoryBackend.prototype.write.bind(backend);
  let count = 0;
  backend.write = async (changes) => {
    if (++count > 1) return write(changes);
    await late;
    throw new DOMException("full", "QuotaExceededError");
  };
  const history = History.inMemory(backend);
  const older = history.write(putAll(message("m", "c", { text: "older" })));
  await history.write(putAll(message("m", "c", { text: "newer" })));
  fail();
  await older;
  await history.write(putAll(message("m", "c", { text: "newest" })));
  await history.write([]);
  assert.deepEqual((await backend.all("messages")).map((one) => one.text), ["newest"]);
});

test("a private window works in memory, and says so", async () => {
  let warning = "";
  const history = await History.open(() => Promise.reject(new DOMException("no", "InvalidStateError")), (sentence) => {
    warning = sentence; });
  assert.match(warning, /until this tab is closed/);
  await history.write(putAll(conversation("c")));
  assert.equal((await history.conversations()).length, 1);
  assert.match(history.warning, /until this tab is closed/);
});

test("the search finds all words of one text and shows where", async () => {
  const history = History.inMemory();
  await history.write(putAll(message("a", "c1", { text: "The quick brown fox" }), message("b", "c2", { text: "a quick dog" })));
  assert.deepEqual([...await history.search("QUICK fox", () => false)], [["c1", "The quick brown fox"]]);
  assert.equal((await history.search("quick", () => false)).size, 2);
  assert.equal((await history.search("quick", () => true)).size, 1, "a search that is over stops");
  assert.equal((await history.search("  ", () => false)).size, 0);
});

test("an export read in again is the same; what is here already gets new ids and stays", () => {
  const changes: Change[] = [...putAll(conversation("c", { leaf: "m2" }), message("m1", "c", { attachments: [{ id: "f", name: "n",
    length: 1 }] }),
    message("m2", "c", { role: "assistant", parent: "m1", state: "done" })), { store: "attachments", put: { id: "f", conversation: "c",
      name: "n", text: "t" } }];
  const lines = toLines(changes);
  assert.deepEqual(fromLines(lines, () => false), changes);
  const again = fromLines(lines, () => true).map((change) => (change as { put: Record<string, any> }).put);
  const [c, m1, m2, f] = again;
  assert.notEqual(c.id, "c");
  assert.equal(c.leaf, m2.id);
  assert.equal(m2.parent, m1.id);
  assert.deepEqual([m1.conversation, m2.conversation, f.conversation], [c.id, c.id, c.id]);
  assert.equal(m1.attachments[0].id, f.id);
});

test("files that are no export are refused with a sentence", () => {
  assert.throws(() => fromLines("hello", () => false), /Line 1/);
  assert.throws(() => fromLines("{}", () => false), /not an export/);
  assert.throws(() => fromLines('{"format":"lockstep.chat","version":99}', () => false), /newer/);
});

test("an answer that ran while it was exported is cut, and belongs to no stream", () => {
  const [{ put }] = fromLines(toLines(putAll(message("m", "c", { role: "assistant", state: "running", running: 1, stream: { id: "s",
    next: 3 } }))),
    () => false) as { put: Message }[];
  assert.equal(put.state, "cut");
  assert.equal(put.running, undefined);
  assert.equal(put.stream, undefined);
});

test("Markdown has the branch that is shown", () => {
  const text = toMarkdown(conversation("c", { leaf: "a" }), [message("u", "c", { text: "Q" }), message("a", "c", { role: "assistant",
    parent: "u", model: "m", text: "A" }),
    message("b", "c", { role: "assistant", parent: "u", text: "not this" })], []);
  assert.equal(text, "# title c\n\n## You\n\nQ\n\n## m\n\nA\n");
});

test("migrations go step by step, drop what they drop, and leave what they do not know", () => {
  const steps: Record<number, Migration> = {
    1: (store, record) => (store === "messages" ? { ...record, text: record.content } : record),
    3: (_, record) => (record.id === "old" ? undefined : { ...record, four: true }),
  };
  assert.deepEqual(migrated("messages", { id: "m", content: "x" }, 1, steps, 4), { id: "m", content: "x", text: "x", four: true });
  assert.deepEqual(migrated("messages", { id: "m" }, 3, steps, 4), { id: "m", four: true });
  assert.equal(migrated("messages", { id: "old" }, 1, steps, 4), undefined);
});

// A database as version 1 wrote it. It never changes: every later version must open it with nothing lost.
test("a history of version 1 opens", () => {
  const dump = JSON.parse(readFileSync("tests/unit/data/history_v1.json", "utf8"));
  const count = { conversations: 2, messages: 5, attachments: 1, drafts: 1 };
  for (const [store, many] of Object.entries(count)) {
    const records = dump[store].map((record: Record<string, unknown>) => migrated(store as "messages", record, 1));
    assert.equal(records.filter((record: unknown) => record !== undefined).length, many, store);
  }
  const texts = dump.messages.map((record: Record<string, unknown>) => (migrated("messages", record, 1) as unknown as Message).text);
  assert.deepEqual(texts, ["Once upon a time", ", there was a dog.", "Then", "", "read it"]);
});

test("one tab writes an answer; another may once the first has gone", () => {
  const values = new Map<string, string>();
  const store: LeaseStore = { getItem: (name) => values.get(name) ?? null, setItem: (name, value) => void values.set(name, value),
    removeItem: (name) => void values.delete(name) };
  let now = 1_000;
  const [one, other] = [0, 1].map(() => new Tabs(() => {}, store, () => now));
  assert.equal(one.claim("m"), true);
  assert.equal(other.claim("m"), false);
  assert.equal(one.claim("m"), true);
  other.release("m");
  assert.equal(other.claim("m"), false, "only the owner releases");
  now += 10_000;
  assert.equal(other.claim("m"), true, "a tab that has died loses it");
  other.release("m");
  assert.equal(one.claim("m"), true);
});
