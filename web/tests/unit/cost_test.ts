import assert from "node:assert/strict";
import test from "node:test";
import { costLine, costOf, costSentence } from "../../src/chat/engine/cost";
import type { Message } from "../../src/chat/engine/types";

const BODY = { temperature: 0, tools: [{ type: "function" }] };
const question: Message = { id: "q", conversation: "c", parent: null, role: "user", text: "", created_ms: 0 };
const answer = (more: Partial<Message> = {}): Message => ({ id: "a", conversation: "c", parent: "q", role: "assistant", text: "yes",
  created_ms: 1, model: "m", body: BODY, system: "be brief", usage: { prompt_tokens: 170, completion_tokens: 30 },
  figures: { prompt_new: 60, prompt_s: 0.5 }, ...more });
const cost = (tokens: number, path: Message[], finished = path, body: Record<string, unknown> = BODY, system = "be brief") =>
  costOf(tokens, "m", body, system, path, finished);

test("whole pages of the prompt and the answer before it are cached, the rest is new", () => {
  assert.deepEqual(cost(240, [question, answer()]), { tokens: 240, cached: 192, fresh: 48, seconds: 0.4 });
  const short = answer({ usage: { prompt_tokens: 60, completion_tokens: 4 } });
  assert.equal(cost(80, [question, short]).cached, 0, "the last token of an answer is never computed");
});

test("the last answer of the same model counts, and a stopped one without usage does not", () => {
  const stopped = answer({ id: "b", usage: undefined, figures: undefined });
  const other = answer({ id: "o", model: "other", usage: { prompt_tokens: 5_000, completion_tokens: 1 } });
  assert.equal(cost(400, [question, answer(), question, other, question, stopped]).cached, 192);
});

test("reasoning and edited text are no part of the next prompt's beginning", () => {
  assert.equal(cost(240, [question, answer({ reasoning: "hm" })]).cached, 128);
  assert.equal(cost(240, [question, answer({ edited: true })]).cached, 128);
});

test("another system prompt or other tools make all of it new", () => {
  assert.deepEqual(cost(240, [question, answer()], [], BODY, "be long"), { tokens: 240, cached: 0, fresh: 240, seconds: undefined });
  assert.equal(cost(240, [question, answer()], [], { temperature: 0 }).cached, 0);
  assert.equal(cost(240, [question, answer()], [], { ...BODY, temperature: 1 }).cached, 192, "sampling is not in the prompt");
});

test("at least one token is always computed", () => {
  assert.deepEqual(cost(128, [question, answer()]), { tokens: 128, cached: 64, fresh: 64, seconds: 64 / 120 });
  assert.equal(cost(129, [question, answer()]).fresh, 1);
});

test("the speed is that of the last four answers that read anything", () => {
  const slow = answer({ figures: { prompt_new: 10, prompt_s: 10 } });
  const fast = answer({ figures: { prompt_new: 300, prompt_s: 1 } });
  const none = answer({ figures: { prompt_new: 0, prompt_s: 0 } });
  const elsewhere = answer({ model: "other", figures: { prompt_new: 1, prompt_s: 100 } });
  assert.equal(cost(492, [question, answer()], [slow, fast, none, fast, elsewhere, fast, fast]).seconds, 1);
});

test("what was not measured is said to be unknown", () => {
  const unknown = cost(34, []);
  assert.deepEqual(unknown, { tokens: 34, cached: undefined, fresh: undefined, seconds: undefined });
  assert.equal(costLine(unknown), "34 to read, time unknown");
  assert.match(costSentence(unknown), /how many of them are cached is not known\. How long that takes is not known/);
  assert.equal(cost(60, [], [answer()]).seconds, 0.5, "an answer of another conversation tells the speed");
  assert.equal(costLine({ tokens: 1_846, fresh: 1_034, cached: 812, seconds: 0.4 }), "1,034 new + 812 cached, 0.40 s");
});
