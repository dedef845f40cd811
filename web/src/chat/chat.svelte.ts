// The chat view's state: the list of conversations, the one that is open, and what can be done with them.
import { toasts } from "../app/toasts.svelte";
import { Answers } from "./engine/answers.svelte";
import { titleOf, type Attached } from "./engine/attach";
import { endStream } from "./engine/kept_stream";
import { preferences } from "./engine/preferences.svelte";
import type { Settings } from "./engine/settings";
import { leafBelow, pathTo, removeBranch, removeOne, siblingsOf, treeOf, type Removal, type Tree } from "./engine/tree";
import { freshId, type Conversation, type Message } from "./engine/types";
import { answerWorld } from "./engine/world";
import { answerBody, fieldsOf } from "./engine/request";
import { catalog } from "../cluster/catalog.svelte";
import { openDatabase } from "./store/database";
import type { Change } from "./store/backend";
import { ATTACHMENTS_LENGTH_MAX, History } from "./store/history";
import { Tabs, type TabNews } from "./store/tabs";

const LOOK_FOR_ORPHANS_MS = 5_000;
const SEEDS = 2 ** 31;
const FINISHED_KEPT = 8;
export const MODELS_MAX = 4; // side by side

interface Thread { conversation: Conversation; tree: Tree; texts: ReadonlyMap<string, string> }

class Chat {
  list = $state.raw<Conversation[]>([]);
  thread = $state.raw<Thread | undefined>(undefined);
  isKnown = $state(false); // the list has been read
  warning = $state("");
  finished = $state.raw<Message[]>([]); // the last answers of this tab, for what they say about speed
  readonly answers = new Answers();
  history!: History;
  private tabs!: Tabs;
  private started: Promise<void> | undefined;

  readonly path = $derived(this.thread ? pathTo(this.thread.tree, this.thread.conversation.leaf) : []);
  readonly settings = $derived(this.thread?.conversation.settings ?? preferences.settings);
  readonly models = $derived.by(() => {
    const wanted = (this.thread?.conversation.models ?? preferences.models).map((name) => catalog.resolve(name));
    const known = wanted.filter((name) => !catalog.isKnown || catalog.find(name));
    const first = catalog.loaded.find((choice) => choice.state === "ready") ?? catalog.loaded[0];
    return known.length > 0 ? known : first ? [first.name] : wanted;
  });
  // An answer is written for the open conversation, by this tab or another one.
  readonly isBusy = $derived(this.thread !== undefined && (this.answers.of(this.thread.conversation.id).length > 0 ||
    this.path.some((message) => message.state === "running")));

  start(): Promise<void> { return (this.started ??= this.begin()); }

  private async begin(): Promise<void> {
    this.tabs = new Tabs((news) => void this.hear(news));
    this.history = await History.open(openDatabase, (sentence) => { this.warning = sentence; });
    this.warning = this.history.warning;
    this.setList(await this.history.conversations());
    this.isKnown = true;
    await this.adopt();
    setInterval(() => void this.adopt(), LOOK_FOR_ORPHANS_MS);
    addEventListener("pagehide", () => this.leaveAll());
    addEventListener("pageshow", ({ persisted }) => { if (persisted) void this.adopt(); });
  }

  private leaveAll(): void {
    for (const answer of this.answers.list) {
      answer.keep();
      answer.leave();
      this.tabs.release(answer.id);
    }
  }

  // Reads on the answers that no tab writes: after a reload, or once the tab that wrote them has gone.
  private async adopt(): Promise<void> {
    for (const message of await this.history.running()) {
      if (this.answers.get(message.id) || !this.tabs.claim(message.id)) continue;
      if (message.stream) this.answers.start(message, this.world());
      else await this.give({ ...message, state: "cut", running: undefined, note: message.text === ""
        ? "The page was closed before the node had answered." : "The page was closed while this answer was written." });
    }
  }

  private async hear(news: TabNews): Promise<void> {
    if (news.kind === "answer") return this.show(news.message);
    await this.started;
    const conversation = await this.history.conversation(news.id);
    this.setList([...this.list.filter((one) => one.id !== news.id), ...(conversation ? [conversation] : [])]);
    if (this.thread?.conversation.id !== news.id) return;
    if (conversation) await this.load(conversation);
    else this.thread = undefined;
  }

  private setList(list: Conversation[]): void {
    this.list = list.sort((a, b) => Number(b.pinned) - Number(a.pinned) || b.updated_ms - a.updated_ms);
  }

  // Changes the messages that are shown, if they are of the open conversation.
  private show(...messages: Message[]): void {
    const ours = messages.filter((message) => message.conversation === this.thread?.conversation.id);
    if (!this.thread || ours.length === 0) return;
    const tree = new Map(this.thread.tree);
    for (const message of ours) tree.set(message.id, message);
    this.thread = { ...this.thread, tree };
  }

  private async write(conversation: string, changes: Change[]): Promise<void> {
    await this.history.write(changes);
    this.tabs.tell({ kind: "conversation", id: conversation });
  }

  private async give(message: Message): Promise<void> {
    this.show(message);
    await this.history.write([{ store: "messages", put: message }]);
    this.tabs.tell({ kind: "answer", message });
  }

  async open(id: string): Promise<boolean> {
    await this.start();
    if (this.thread?.conversation.id === id) return true;
    const conversation = this.list.find((one) => one.id === id);
    if (conversation) await this.load(conversation);
    return conversation !== undefined;
  }

  close(): void { this.thread = undefined; }

  private async load(conversation: Conversation): Promise<void> {
    const [messages, files] = await Promise.all([this.history.messages(conversation.id), this.history.attachments(conversation.id)]);
    this.thread = { conversation, tree: treeOf(messages), texts: new Map(files.map(({ id, text }) => [id, text])) };
  }

  // Changes the open conversation, or the one with this id, and `others` with it.
  async change(change: Partial<Conversation>, others: Change[] = [], id = this.thread?.conversation.id): Promise<void> {
    const old = this.thread?.conversation.id === id ? this.thread?.conversation : this.list.find((one) => one.id === id);
    if (!old) return;
    const conversation = { ...old, ...change };
    this.setList([...this.list.filter((one) => one.id !== old.id), conversation]);
    if (this.thread?.conversation.id === old.id) this.thread = { ...this.thread, conversation };
    await this.write(old.id, [{ store: "conversations", put: conversation }, ...others]);
  }

  setSettings(settings: Settings): void {
    if (this.thread) void this.change({ settings });
    else preferences.keep({ settings });
  }

  setModels(models: string[]): void {
    preferences.keep({ models });
    if (this.thread) void this.change({ models });
  }

  // Adds a message of the person below the branch that is shown, or as a sibling of `edited`, and asks for its answer. Returns the
  // conversation's id, which is new if none is open.
  async send(text: string, files: readonly Attached[], edited?: Message): Promise<string> {
    await this.start();
    const models = this.models.slice(0, MODELS_MAX);
    if (models.length === 0) throw new Error("No model is loaded yet.");
    fieldsOf(this.settings, true); // Settings that cannot be sent stop it here, with what was typed still in the field.
    const length = files.reduce((sum, file) => sum + file.text.length, 0);
    if (length > 0 && await this.history.attachedLength() + length > ATTACHMENTS_LENGTH_MAX) {
      throw new Error(`All attached files together may have ${ATTACHMENTS_LENGTH_MAX >> 20} Mi characters. ` +
        "Delete conversations with files first.");
    }
    const thread = this.thread ?? this.newThread(titleOf(text, files), models);
    const question: Message = { id: freshId(), conversation: thread.conversation.id, role: "user", text, created_ms: Date.now(),
      parent: edited ? edited.parent : thread.conversation.leaf,
      attachments: [...(edited?.attachments ?? []), ...files.map(({ id, name, text }) => ({ id, name, length: text.length }))] };
    const kept = files.map((file) => ({ ...file, conversation: thread.conversation.id }));
    const texts = new Map([...thread.texts, ...kept.map(({ id, text }) => [id, text] as const)]);
    this.thread = { ...thread, tree: new Map(thread.tree).set(question.id, question), texts };
    await this.history.write(kept.map((put) => ({ store: "attachments", put })));
    await this.ask(question, models, [{ store: "messages", put: question }]);
    return thread.conversation.id;
  }

  private newThread(title: string, models: string[]): Thread {
    const now = Date.now();
    void navigator.storage?.persist?.();
    return { tree: new Map(), texts: new Map(), conversation: { id: freshId(), title, created_ms: now, updated_ms: now, pinned: false,
      leaf: null, models, settings: preferences.settings } };
  }

  // Asks each of the models for an answer to `question`, which is the last message of its branch.
  private async ask(question: Message, models: string[], changes: Change[]): Promise<void> {
    const { settings } = this;
    const seed = models.length > 1 ? Math.floor(Math.random() * SEEDS) : undefined;
    const group = models.length > 1 ? freshId() : undefined;
    const answers = models.map((model, at): Message => ({ id: freshId(), conversation: question.conversation, parent: question.id,
      role: "assistant", text: "", created_ms: Date.now() + at, model, state: "running", running: 1, ...(group ? { group } : {}) }));
    for (const answer of answers) answer.body = answerBody(answer.model!, settings, catalog.kind(answer.model!)?.isChat ?? true, seed);
    this.show(...answers);
    for (const answer of answers) this.tabs.claim(answer.id);
    const messages = answers.map((put): Change => ({ store: "messages", put }));
    await this.change({ leaf: answers[0].id, updated_ms: Date.now() }, [...changes, ...messages]);
    for (const answer of answers) this.answers.start(answer, this.world());
  }

  async regenerate(answer: Message, model = answer.model!): Promise<void> {
    const question = this.thread?.tree.get(answer.parent ?? "");
    if (question) await this.ask(question, [model], []);
  }

  // Lets the model write on where the answer ended.
  async continueAnswer(answer: Message): Promise<void> {
    const { figures: _, usage: __, receipt: ___, note: ____, finish: _____, ...rest } = answer;
    const going: Message = { ...rest, state: "running", running: 1, times_ms: [], tokens: undefined, continued_at: answer.text.length };
    this.show(going);
    this.tabs.claim(going.id);
    this.answers.start(going, this.world());
  }

  // Another text in place of a message: a sibling, so that the old one stays. A question is sent again.
  async edit(message: Message, text: string): Promise<void> {
    if (message.role === "user") return void await this.send(text, [], message);
    const { group: _, receipt: __, tokens: ___, times_ms: ____, seams: _____, figures: ______, ...kept } = message;
    const other: Message = { ...kept, id: freshId(), text, edited: true, created_ms: Date.now(), state: "done", note: undefined };
    this.show(other);
    await this.change({ leaf: other.id, updated_ms: Date.now() }, [{ store: "messages", put: other }]);
  }

  // Takes `alternative` in place of token `index` and lets the model go on from there, in a new version of the answer.
  async branchAt(answer: Message, index: number, alternative: string): Promise<void> {
    const before = (answer.tokens ?? []).slice(0, index).map((token) => token.token).join("");
    if (!answer.text.startsWith(before)) {
      throw new Error("The model can go on from another token only in answers without reasoning or calls.");
    }
    const { group: _, receipt: __, tokens: ___, seams: ____, calls: _____, body, ...kept } = answer;
    const other: Message = { ...kept, id: freshId(), text: before + alternative, created_ms: Date.now(), body };
    this.show(other);
    await this.change({ leaf: other.id, updated_ms: Date.now() }, [{ store: "messages", put: other }]);
    await this.continueAnswer(other);
  }

  // The result of a call, typed by hand. Once all calls have one, the model goes on in a new answer.
  async answerCall(answer: Message, call: string, result: string): Promise<void> {
    const calls = (answer.calls ?? []).map((one) => (one.id === call ? { ...one, result } : one));
    const answered = { ...answer, calls };
    await this.give(answered);
    if (calls.every((one) => one.result !== undefined)) await this.ask(answered, [answer.model!], []);
  }

  // Ends the answers of the open conversation, also those that another tab writes.
  async stop(): Promise<void> {
    if (!this.thread) return;
    const others = this.path.filter((message) => message.state === "running" && message.stream && !this.answers.get(message.id));
    await Promise.all([this.answers.stopAll(this.thread.conversation.id), ...others.map((message) => endStream(message.stream!.id))]);
  }

  async choose(sibling: Message): Promise<void> {
    if (this.thread) await this.change({ leaf: leafBelow(this.thread.tree, sibling.id) });
  }

  siblings(message: Message): Message[] { return this.thread ? siblingsOf(this.thread.tree, message) : []; }

  // `whole`: with all that stands below it. Nothing else is removed, and it can be undone.
  async remove(message: Message, whole: boolean): Promise<void> {
    const { thread } = this;
    if (!thread) return;
    const { conversation, tree } = thread;
    const removal: Removal = (whole ? removeBranch : removeOne)(tree, message.id, conversation.leaf);
    await Promise.all(removal.removed.map((one) => this.answers.stop(one.id)));
    const before = removal.moved.map((one) => tree.get(one.id)!);
    await this.replace(conversation, { put: removal.moved, remove: removal.removed, leaf: removal.leaf });
    toasts.offer(removal.removed.length === 1 ? "The message is deleted." : `${removal.removed.length} messages are deleted.`, "Undo",
      () => void this.replace(conversation, { put: [...removal.removed, ...before], remove: [], leaf: conversation.leaf }));
  }

  private async replace(old: Conversation,
      { put, remove, leaf }: { put: Message[]; remove: Message[]; leaf: string | null }): Promise<void> {
    const now = this.list.find((one) => one.id === old.id) ?? old;
    const conversation = { ...now, leaf };
    await this.write(old.id, [{ store: "conversations", put: conversation }, ...put.map((one): Change => ({ store: "messages", put: one })),
      ...remove.map((one): Change => ({ store: "messages", remove: one.id }))]);
    this.setList([...this.list.filter((one) => one.id !== old.id), conversation]);
    if (this.thread?.conversation.id === old.id) await this.load(conversation);
  }

  async removeConversation(id: string): Promise<void> {
    await this.answers.stopAll(id);
    const whole = await this.history.whole(id);
    const { title } = this.list.find((one) => one.id === id) ?? { title: "" };
    if (this.thread?.conversation.id === id) this.thread = undefined;
    this.setList(this.list.filter((one) => one.id !== id));
    await this.write(id, [...whole.flatMap((change): Change[] => ("put" in change
      ? [{ store: change.store, remove: (change.put as { id: string }).id }] : [])), { store: "drafts", remove: id }]);
    toasts.offer(`“${title}” is deleted.`, "Undo", () => void this.add(whole));
  }

  // Stores conversations that were read from a file, or deleted before.
  async add(changes: Change[]): Promise<void> {
    await this.history.write(changes);
    this.setList(await this.history.conversations());
    for (const change of changes) {
      if (change.store === "conversations" && "put" in change) this.tabs.tell({ kind: "conversation",
        id: (change.put as Conversation).id });
    }
  }

  private world(): ReturnType<typeof answerWorld> {
    return answerWorld(this.history, this.tabs, (id) => (this.thread?.conversation.id === id ? this.thread : undefined),
      (message) => {
        this.finished = [...this.finished, message].slice(-FINISHED_KEPT);
        this.show(message);
      });
  }
}

export const chat = new Chat();
