// The npm package "@anthropic-ai/sdk" against a server.
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import * as served from "./served.mjs";

const client = new Anthropic({ baseURL: served.base, apiKey: "none", maxRetries: 0, timeout: 60_000 });
const ask = [{ role: "user", content: "Read the note." }];
const readNote = { name: "read_note", description: "reads", input_schema: served.noteSchema };
const pick = { name: "pick", description: "picks", input_schema: served.pickSchema };

test("a message, streamed and whole, with a system text that is cached", async () => {
  const request = { model: served.scripted, max_tokens: 200, messages: ask,
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }] };
  const whole = await client.messages.create(request);
  assert.equal(whole.type, "message");
  assert.equal(whole.stop_reason, "end_turn");
  assert.deepEqual(whole.content.map((block) => block.type), ["text"]);
  assert.equal(whole.content[0].text, served.scriptedPlain);
  assert.ok(whole.usage.output_tokens > 0);
  const stream = client.messages.stream(request);
  const deltas = [];
  stream.on("text", (delta) => deltas.push(delta));
  const message = await stream.finalMessage();
  assert.equal(message.content[0].text, served.scriptedPlain);
  assert.equal(deltas.join(""), served.scriptedPlain);
  assert.ok(deltas.length > 2);
  assert.equal(message.stop_reason, "end_turn");
});

test("a call of the model's own will, its result, and the last words", async () => {
  const stream = client.messages.stream({ model: served.scripted, max_tokens: 200, messages: ask, tools: [readNote] });
  const first = await stream.finalMessage();
  assert.equal(first.stop_reason, "tool_use");
  const use = first.content.find((block) => block.type === "tool_use");
  assert.equal(use.name, "read_note");
  assert.deepEqual(use.input, served.scriptedArguments);
  const messages = [...ask, { role: "assistant", content: first.content },
    { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "hello" }] }];
  const second = await client.messages.create({ model: served.scripted, max_tokens: 200, messages, tools: [readNote] });
  assert.equal(second.content[0].text, served.scriptedDone);
});

test("any and a named tool are forced, and keep the schema", async () => {
  for (const forced of [{ type: "any" }, { type: "tool", name: "pick" }]) {
    const tool_choice = { ...forced, disable_parallel_tool_use: true };
    const answer = await client.messages.create({ model: served.chat, max_tokens: 300, messages: ask, tools: [pick],
      tool_choice });
    assert.equal(answer.stop_reason, "tool_use");
    served.checkPick(answer.content.find((block) => block.type === "tool_use").input);
  }
});

test("stop sequences and the limit are told apart", async () => {
  const stopped = await client.messages.create({ model: served.scripted, max_tokens: 200, messages: ask,
    stop_sequences: [", and"] });
  assert.equal(stopped.stop_reason, "stop_sequence");
  assert.equal(stopped.stop_sequence, ", and");
  const cut = await client.messages.create({ model: served.scripted, max_tokens: 2, messages: ask });
  assert.equal(cut.stop_reason, "max_tokens");
});

test("tokens are counted", async () => {
  const few = await client.messages.countTokens({ model: served.scripted, messages: ask });
  const more = await client.messages.countTokens({ model: served.scripted, messages: ask, tools: [readNote] });
  assert.ok(few.input_tokens > 0 && more.input_tokens > few.input_tokens);
});

test("mistakes are errors of the API's form", async () => {
  const error = await client.messages.create({ model: served.scripted, max_tokens: 10, messages: ask, temperature: 9 })
    .catch((caught) => caught);
  assert.ok(error instanceof Anthropic.BadRequestError, String(error));
  assert.equal(error.error.type, "error");
  assert.equal(error.error.error.type, "invalid_request_error");
});

test("an aborted stream ends its request", async () => {
  const stream = client.messages.stream({ model: served.chat, max_tokens: 400, messages: ask });
  stream.on("error", () => {});
  const ended = stream.done().catch((error) => assert.ok(error instanceof Anthropic.APIUserAbortError));
  await new Promise((resolve, reject) => {
    stream.once("streamEvent", resolve);
    stream.once("error", reject);
  });
  stream.abort();
  await ended;
  await served.allEnded();
});

test("the models that are loaded, page by page, and one of them", async () => {
  const ids = [];
  for await (const model of client.models.list({ limit: 1 })) {
    assert.equal(model.type, "model");
    assert.ok(model.display_name.length > 0);
    assert.ok(!Number.isNaN(Date.parse(model.created_at)));
    ids.push(model.id);
  }
  assert.ok(ids.includes(served.scripted));
  assert.ok(ids.length > 1);
  assert.equal((await client.models.retrieve(served.scripted)).id, served.scripted);
});
