import assert from "node:assert/strict";
import test from "node:test";
import { AnswerReducer } from "../../src/chat/engine/reducer";
import type { Message } from "../../src/chat/engine/types";

const empty = (more: Partial<Message> = {}): Message => ({ id: "a", conversation: "c", parent: "u", role: "assistant", text: "",
  created_ms: 0, ...more });
const event = (data: unknown, id = ""): { event: string; data: string; id: string } => ({ event: "message", id,
  data: typeof data === "string" ? data : JSON.stringify(data) });
const delta = (delta: object, more: object = {}): object => ({ choices: [{ index: 0, delta, finish_reason: null, ...more }] });

function reduced(events: unknown[], message = empty()): AnswerReducer {
  const reducer = new AnswerReducer(message, 0);
  events.forEach((data, at) => reducer.take(event(data, message.stream ? String(at) : ""), (at + 1) * 100));
  return reducer;
}

test("content, reasoning, calls, figures and receipt of a chat completion", () => {
  const { message, moment } = reduced([
    { choices: [], prompt_progress: { total: 100, cache: 40, processed: 70, time_ms: 5 } },
    delta({ role: "assistant", content: "" }), delta({ reasoning_content: "think" }), delta({ reasoning_content: "ing" }),
    delta({ content: "Hel" }), delta({ content: "lo" }),
    delta({ tool_calls: [{ index: 0, id: "k", type: "function", function: { name: "add", arguments: "" } }] }),
    delta({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }), delta({ tool_calls: [{ index: 0, function: {
      arguments: ":1}" } }] }),
    delta({}, { finish_reason: "tool_calls" }),
    { choices: [], usage: { prompt_tokens: 100, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 40 } },
      timings: { prompt_n: 60, prompt_ms: 250, cache_n: 40, predicted_n: 9, predicted_ms: 640, predicted_per_second: 12.5 },
      lockstep: { first_token_ms: 310, machines: 2, joules: 41, receipt: "r", answer_ids: [1, 2] } },
    "[DONE]",
  ]);
  assert.equal(message.text, "Hello");
  assert.equal(message.reasoning, "thinking");
  assert.deepEqual(message.calls, [{ id: "k", name: "add", arguments: '{"a":1}' }]);
  assert.equal(message.finish, "tool_calls");
  assert.deepEqual(message.figures, { first_s: 0.31, tokens: 9, tokens_s: 12.5, prompt_cached: 40, prompt_new: 60, prompt_s: 0.25,
    machines: 2, joules: 41 });
  assert.equal(moment.computed_ms, 890);
  assert.deepEqual(message.receipt, { text: "r", answer_ids: [1, 2] });
  assert.equal(moment.ended, true);
  assert.equal(message.times_ms!.length, 7);
});

test("without timings the page's own clock and the usage say what they can", () => {
  const { message } = reduced([delta({ content: "a" }), delta({ content: "b" }), delta({ content: "c" }),
    { choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } } }]);
  assert.deepEqual(message.figures, { first_s: 0.1, tokens: 3, prompt_cached: 2, prompt_new: 3, tokens_s: 10 });
});

test("progress is shown until text comes", () => {
  const reducer = reduced([{ choices: [], prompt_progress: { total: 9, processed: 3, time_ms: 1 } }]);
  assert.deepEqual(reducer.moment.progress, { total: 9, cached: 0, processed: 3, time_ms: 1 });
  reducer.take(event(delta({ content: "x" })), 1);
  assert.equal(reducer.moment.progress, undefined);
});

test("a pause and what came of it become a seam at that place", () => {
  const reducer = reduced([delta({ content: "one" }), { choices: [], lockstep: { event: { kind: "pause", reason: "box was lost." } } }]);
  assert.equal(reducer.moment.paused, "box was lost");
  reducer.take(event({ choices: [], lockstep: { event: { kind: "resume", after_s: 1.26, recomputed_tokens: 58 } } }), 1);
  reducer.take(event({ choices: [], lockstep: { event: { kind: "node", reason: "it goes on with a and c." } } }), 2);
  reducer.take(event(delta({ content: " two" })), 2);
  assert.equal(reducer.moment.paused, undefined);
  assert.deepEqual(reducer.message.seams,
    [{ at: 3, label: "box was lost, 1.3 s, 58 tokens computed again, text unchanged; it goes on with a and c" }]);
});

test("a stream that is read twice in parts gives the same message, wherever it is cut", () => {
  const events = [..."A story of a dog."].map((letter) => delta({ content: letter }));
  const whole = reduced(events).message.text;
  for (let cut = 0; cut <= events.length; ++cut) {
    const message = empty({ stream: { id: "s", next: 0 } });
    const first = new AnswerReducer(message, 0);
    events.slice(0, cut).forEach((data, at) => first.take(event(data, String(at)), at));
    assert.equal(message.stream!.next, cut);
    const second = new AnswerReducer(structuredClone(message), 0);
    // The node may send an event again that was taken already.
    events.slice(Math.max(0, cut - 2)).forEach((data, at) => second.take(event(data, String(Math.max(0, cut - 2) + at)), at));
    assert.equal(second.message.text, whole);
    assert.equal(second.message.stream!.next, events.length);
  }
});

test("log-probabilities of both APIs, and their limits", () => {
  const chat = reduced([delta({ content: "a" }, { logprobs: { content: [{ token: "a", logprob: -1, top_logprobs: [{ token: "b",
    logprob: -2, bytes: [] }] }] } })]);
  assert.deepEqual(chat.message.tokens, [{ token: "a", logprob: -1, top: [{ token: "b", logprob: -2 }] }]);
  const text = reduced([{ choices: [{ text: "a", logprobs: { tokens: ["a"], token_logprobs: [-1], top_logprobs: [{ b: -2 }] } }] }]);
  assert.deepEqual(text.message.tokens, chat.message.tokens);
  const many = Array.from({ length: 20 }, (_, at) => ({ token: String(at), logprob: -1 }));
  const long = reduced(Array.from({ length: 9_000 }, () => delta({ content: "a" }, { logprobs: { content: [{ token: "a", logprob: -1,
    top_logprobs: many }] } })));
  assert.equal(long.message.tokens!.length, 8_192);
  assert.equal(long.message.tokens!.reduce((sum, token) => sum + token.top.length, 0), 20_000);
  assert.equal(long.message.text.length, 9_000);
});

test("an error ends the answer with the node's sentence", () => {
  const { moment, message } = reduced([delta({ content: "a" }), { error: { message: "the node shuts down", code: "shutting_down" } }]);
  assert.equal(moment.error, "the node shuts down");
  assert.equal(moment.ended, true);
  assert.equal(message.text, "a");
});
