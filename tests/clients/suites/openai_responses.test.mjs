// The npm package "openai" against a server: the Responses API.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import * as served from "./served.mjs";

const client = new OpenAI({ baseURL: `${served.base}/v1`, apiKey: "none", maxRetries: 0, timeout: 60_000 });
const readNote = { type: "function", name: "read_note", description: "reads", strict: false, parameters: served.noteSchema };
const pick = { type: "function", name: "pick", description: "picks", strict: true, parameters: served.pickSchema };

test("a response has its text, streamed and whole", async () => {
  const request = { model: served.scripted, input: "Hello", store: false };
  const whole = await client.responses.create(request);
  assert.equal(whole.status, "completed");
  assert.equal(whole.output_text, served.scriptedPlain);
  assert.ok(whole.usage.output_tokens > 0);
  const stream = client.responses.stream(request);
  let text = "";
  const types = [];
  for await (const event of stream) {
    types.push(event.type);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(text, served.scriptedPlain);
  assert.equal(types[0], "response.created");
  assert.equal(types.at(-1), "response.completed");
  assert.equal((await stream.finalResponse()).output_text, served.scriptedPlain);
});

test("a call, its result, and the last words", async () => {
  const input = [{ role: "user", content: "Read the note." }];
  const stream = client.responses.stream({ model: served.scripted, input, tools: [readNote], store: false });
  const first = await stream.finalResponse();
  const call = first.output.find((item) => item.type === "function_call");
  assert.equal(call.name, "read_note");
  assert.deepEqual(JSON.parse(call.arguments), served.scriptedArguments);
  const second = await client.responses.create({ model: served.scripted, tools: [readNote], store: false, input: [
    ...input, { type: "function_call", call_id: call.call_id, name: call.name, arguments: call.arguments },
    { type: "function_call_output", call_id: call.call_id, output: "hello" }] });
  assert.equal(second.output_text, served.scriptedDone);
});

test("a call that is required keeps its schema", async () => {
  const answer = await client.responses.create({ model: served.chat, input: "Pick.", tools: [pick],
    tool_choice: "required", parallel_tool_calls: false, max_output_tokens: 300, store: false });
  const call = answer.output.find((item) => item.type === "function_call");
  served.checkPick(JSON.parse(call.arguments));
});

test("a schema for the text is kept", async () => {
  const answer = await client.responses.create({ model: served.chat, input: "Pick.", max_output_tokens: 300, store: false,
    text: { format: { type: "json_schema", name: "pick", strict: true, schema: served.pickSchema } } });
  served.checkPick(JSON.parse(answer.output_text));
});

test("a mistake is a 400 before the stream", async () => {
  await assert.rejects(client.responses.create({ model: served.scripted, input: "a", temperature: 9, stream: true }),
    OpenAI.BadRequestError);
});
