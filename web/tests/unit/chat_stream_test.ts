import assert from "node:assert/strict";
import test from "node:test";
import { ApiError } from "../../src/lib/api";
import { endStream, KeptStream, type StreamHooks } from "../../src/chat/engine/kept_stream";

// A node that keeps a stream of `letters`, and cuts connections where `cuts` say: after so many events, or a status.
class FakeNode {
  readonly asked: string[] = [];
  isKept = true;
  constructor(private readonly letters: string, private readonly cuts: (number | { status: number } | "unreachable")[]) {
    globalThis.fetch = (async (path: string, init: RequestInit) => this.answer(path, init)) as typeof fetch;
  }

  private answer(path: string, init: RequestInit): Response {
    this.asked.push(`${init.method} ${path}`);
    const cut = this.cuts.shift() ?? Infinity;
    if (cut === "unreachable") throw new TypeError("no network");
    if (typeof cut === "object") return Response.json({ error: { message: "a sentence", code: "c" } }, { status: cut.status });
    const from = Number(new URL(path, "http://node").searchParams.get("from") ?? 0);
    const events = [...this.letters, "[DONE]"].map((data, at) => `id: ${at}\ndata: ${data}\n\n`).slice(from, from + cut);
    return new Response(`: keep-alive\n\n${events.join("")}`, { headers: this.isKept ? { "x-lockstep-stream": "ID" } : {} });
  }
}

class Reader implements StreamHooks {
  text = "";
  count = 0;
  id = "";
  ended = false;
  lostTimes = 0;
  take({ data, id }: { data: string; id: string }): void {
    if (id !== "") assert.equal(Number(id), this.count, "no event is lost or doubled");
    this.count += 1;
    if (data === "[DONE]") this.ended = true;
    else this.text += data;
  }
  kept(id: string): void { this.id = id; }
  next(): number { return this.count; }
  isEnded(): boolean { return this.ended; }
  lost(sentence: string): void { if (sentence !== "") this.lostTimes += 1; }
}

class FakeClock {
  time = 0;
  now(): number { return this.time; }
  async sleep(ms: number): Promise<void> { this.time += ms; }
}

const request = { path: "/v1/completions" as const, body: {} };
const begun = (reader: Reader, signal = new AbortController().signal): Promise<unknown> =>
  new KeptStream(reader, signal, new FakeClock()).begin(request);

test("an undisturbed stream is read to its end with one request", async () => {
  const node = new FakeNode("hello", []);
  const reader = new Reader();
  assert.deepEqual(await begun(reader), { kind: "done", sentence: "" });
  assert.equal(reader.text, "hello");
  assert.equal(reader.id, "ID");
  assert.deepEqual(node.asked, ["POST /v1/completions"]);
});

test("a lost connection is made again from the next event, and the text is the same, wherever it was cut", async () => {
  for (let cut = 0; cut <= 5; ++cut) {
    const node = new FakeNode("hello", [cut, "unreachable", { status: 503 }, 0, 1]);
    const reader = new Reader();
    assert.deepEqual(await begun(reader), { kind: "done", sentence: "" }, `cut at ${cut}`);
    assert.equal(reader.text, "hello");
    assert.equal(node.asked[1], `GET /v1/streams/ID?from=${cut}`);
    assert.ok(reader.lostTimes >= 3);
  }
});

test("a reload reads on where it was", async () => {
  new FakeNode("hello", []);
  const reader = new Reader();
  reader.count = 3;
  reader.text = "hel";
  assert.equal((await new KeptStream(reader, new AbortController().signal, new FakeClock()).resume("ID")).kind, "done");
  assert.equal(reader.text, "hello");
});

test("a stream that the node has forgotten is cut, with its sentence", async () => {
  for (const status of [404, 410]) {
    new FakeNode("hello", [2, { status }]);
    const reader = new Reader();
    const end = await begun(reader) as { kind: string; sentence: string };
    assert.equal(end.kind, "cut");
    assert.equal(end.sentence, "a sentence");
    assert.equal(reader.text, "he");
  }
});

test("a node that stays away is given up after a while, not at once and not never", async () => {
  const node = new FakeNode("hello", [2, ...Array<"unreachable">(1_000).fill("unreachable")]);
  const end = await begun(new Reader()) as { kind: string };
  assert.equal(end.kind, "cut");
  assert.ok(node.asked.length > 10 && node.asked.length < 100, `${node.asked.length} tries`);
});

test("a node that keeps no streams: the answer is cut where the connection was lost", async () => {
  const node = new FakeNode("hello", [2]);
  node.isKept = false;
  const reader = new Reader();
  assert.equal((await begun(reader) as { kind: string }).kind, "cut");
  assert.equal(node.asked.length, 1);
});

test("a refusal is an ApiError, and a stop ends it without one", async () => {
  new FakeNode("hello", [{ status: 400 }]);
  await assert.rejects(begun(new Reader()), (error) => error instanceof ApiError && error.message === "a sentence");
  new FakeNode("hello", [2, "unreachable"]);
  const abort = new AbortController();
  const reader = new Reader();
  reader.lost = () => abort.abort();
  assert.deepEqual(await begun(reader, abort.signal), { kind: "stopped", sentence: "" });
});

test("stopping an answer that has ended already is no error, another refusal is one", async () => {
  new FakeNode("", [{ status: 404 }, { status: 500 }]);
  await endStream("ID");
  await assert.rejects(endStream("ID"));
});
