import assert from "node:assert/strict";
import test from "node:test";
import { answerBody, answerRequest, chatMessages, countBody, fieldsOf, promptOf } from "../../src/chat/engine/request";
import { cleanSettings, countSet, faultsOf, NO_SETTINGS, SAMPLING_FIELDS, type Settings } from "../../src/chat/engine/settings";
import type { Message } from "../../src/chat/engine/types";

const said = (role: "user" | "assistant", text: string, more: Partial<Message> = {}): Message => ({ id: text, conversation: "c",
  parent: null,
  role, text, created_ms: 0, ...more });
const settings = (more: Partial<Settings>): Settings => ({ ...NO_SETTINGS, ...more });
const none = new Map<string, string>();

test("a conversation becomes messages: files folded, calls with their results, failed answers left out", () => {
  const path = [said("user", "read it", { attachments: [{ id: "f", name: "a.md", length: 9 }] }),
    said("assistant", "", { state: "failed" }),
    said("assistant", "", { reasoning: "hm", calls: [{ id: "k", name: "add", arguments: "{}", result: "3" }] }),
    said("assistant", "three")];
  assert.deepEqual(chatMessages(path, "be short", new Map([["f", "```\nx\n```"]])), [
    { role: "system", content: "be short" },
    { role: "user", content: "a.md:\n````\n```\nx\n```\n````\n\nread it" },
    { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [{ id: "k", type: "function", function: { name: "add",
      arguments: "{}" } }] },
    { role: "tool", tool_call_id: "k", content: "3" },
    { role: "assistant", content: "three" },
  ]);
});

test("a file that is gone is said to be gone", () => {
  const [message] = chatMessages([said("user", "x", { attachments: [{ id: "f", name: "a", length: 1 }] })], "", none);
  assert.match(message.content!, /no longer kept/);
});

test("a base model gets one text that goes on", () => {
  const path = [said("user", "Once upon a time"), said("assistant", ", there was"), said("user", "Then")];
  assert.equal(promptOf(path, "", none), "Once upon a time, there was\nThen");
  assert.equal(promptOf([path[0], path[1], said("user", " a dog")], "", none), "Once upon a time, there was a dog");
  const { path: route, body } = answerRequest(answerBody("m", NO_SETTINGS, false), false, [path[0]], "", none, path[1]);
  assert.equal(route, "/v1/completions");
  assert.equal(body.prompt, "Once upon a time, there was");
  assert.ok((body.max_tokens as number) > 1 << 20, "a completion of 16 tokens is not an answer");
});

test("an answer that is continued is the last message", () => {
  const { path, body } = answerRequest(answerBody("m", NO_SETTINGS, true), true, [said("user", "a")], "", none, said("assistant", "b"));
  assert.equal(path, "/v1/chat/completions");
  assert.equal(body.continue_final_message, true);
  assert.equal(body.add_generation_prompt, false);
  assert.deepEqual((body.messages as { content: string }[]).at(-1), { role: "assistant", content: "b" });
});

test("every sampling field reaches the request, and none that is not set", () => {
  assert.deepEqual(fieldsOf(NO_SETTINGS, true), {});
  const sampling = Object.fromEntries(SAMPLING_FIELDS.map((field) => [field.name, "flag" in field ? true : 1]));
  const fields = fieldsOf(settings({ sampling, stop: ["x"], logit_bias: '{"1":2}', dry_sequence_breakers: '["a"]' }), true);
  for (const { name } of SAMPLING_FIELDS) assert.notEqual(fields[name], undefined, name);
  assert.equal(fields.logprobs, true);
  assert.deepEqual(fields.logit_bias, { 1: 2 });
  const completion = fieldsOf(settings({ sampling: { top_logprobs: 3 } }), false);
  assert.deepEqual(completion, { logprobs: 3 });
});

test("tools, schema, effort and template go to chat only; other fields come last", () => {
  const all = settings({ tools: '[{"name":"f"}]', tool_choice: "required", schema: "{}", effort: "low", template: '{"a":1}',
    other: '{"x":1,"top_p":0.5}',
    sampling: { top_p: 1 } });
  assert.deepEqual(fieldsOf(all, true), { top_p: 0.5, tools: [{ type: "function", function: { name: "f" } }], tool_choice: "required",
    response_format: { type: "json_schema", json_schema: { name: "answer", schema: {} } }, chat_template_kwargs: { a: 1 },
      reasoning_effort: "low", x: 1 });
  assert.deepEqual(fieldsOf(all, false), { top_p: 0.5, x: 1 });
});

test("settings that are no JSON are named and stop the request", () => {
  const wrong = settings({ tools: "{", other: "[]" });
  assert.match(faultsOf(wrong).tools!, /no JSON/);
  assert.match(faultsOf(wrong).other!, /object/);
  assert.throws(() => answerBody("m", wrong, true), /tools/);
});

test("settings of any origin are cleaned", () => {
  assert.deepEqual(cleanSettings(undefined), NO_SETTINGS);
  assert.deepEqual(cleanSettings({ system: 3, sampling: { top_k: "x", seed: 7, unknown: 1 }, stop: ["a", 1], effort: "huge" }),
    settings({ sampling: { seed: 7 }, stop: ["a"] }));
  assert.equal(countSet(settings({ system: "x", sampling: { seed: 7, top_k: 1 } })), 3);
});

test("a seed for several models does not replace the person's", () => {
  assert.equal(answerBody("m", NO_SETTINGS, true, 5).seed, 5);
  assert.equal(answerBody("m", settings({ sampling: { seed: 7 } }), true, 5).seed, 7);
});

test("counting asks for the same conversation in Anthropic's form", () => {
  const body = countBody("m", settings({ system: "s", tools: '[{"name":"f","parameters":{"type":"object"}}]' }),
    [said("user", "a"), said("assistant", "b", { calls: [{ id: "k", name: "f", arguments: '{"x":1}', result: "r" }] })], none);
  assert.deepEqual(body, { model: "m", system: "s", tools: [{ name: "f", description: undefined, input_schema: { type: "object" } }],
    messages: [
    { role: "user", content: "a" },
    { role: "assistant", content: [{ type: "text", text: "b" }, { type: "tool_use", id: "k", name: "f", input: { x: 1 } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "k", content: "r" }] }] });
});
