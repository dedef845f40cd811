// The npm package "ollama" against a server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ollama } from "ollama";
import * as served from "./served.mjs";

const client = new Ollama({ host: served.base });
const ask = [{ role: "user", content: "Read the note." }];
const tool = (name, parameters) => ({ type: "function", function: { name, description: name, parameters } });

test("models are listed, shown and said to run", async () => {
  const { models } = await client.list();
  const names = models.map((model) => model.name.replace(/:latest$/, ""));
  for (const name of [served.stories, served.chat, served.scripted]) assert.ok(names.includes(name), names.join());
  for (const model of models) {
    for (const key of ["name", "modified_at", "size", "digest", "details"]) assert.ok(key in model, key);
    for (const key of ["format", "family", "parameter_size", "quantization_level"]) assert.ok(key in model.details, key);
  }
  const shown = await client.show({ model: served.scripted });
  assert.ok(shown.capabilities.includes("completion"));
  assert.ok(shown.capabilities.includes("tools"));
  assert.ok(shown.model_info);
  assert.ok((await client.ps()).models.length > 0);
  assert.ok((await client.version()).version);
});

test("a chat, streamed and whole", async () => {
  const whole = await client.chat({ model: served.scripted, messages: ask });
  assert.equal(whole.message.content, served.scriptedPlain);
  assert.equal(whole.done, true);
  assert.ok(whole.eval_count > 0 && whole.prompt_eval_count > 0 && whole.total_duration > 0);
  let text = "";
  let last = null;
  for await (const part of await client.chat({ model: served.scripted, messages: ask, stream: true })) {
    text += part.message.content;
    last = part;
  }
  assert.equal(text, served.scriptedPlain);
  assert.equal(last.done, true);
  assert.equal(last.done_reason, "stop");
});

test("a text is continued, streamed and whole", async () => {
  const request = { model: served.stories, prompt: "Once upon a time", options: { num_predict: 20, temperature: 0 } };
  const whole = await client.generate(request);
  let text = "";
  for await (const part of await client.generate({ ...request, stream: true })) text += part.response;
  assert.equal(text, whole.response);
  assert.equal(whole.eval_count, 20);
  assert.equal(whole.done_reason, "length");
});

test("a call, its result, and the last words", async () => {
  const tools = [tool("read_note", served.noteSchema)];
  const first = await client.chat({ model: served.scripted, messages: ask, tools });
  assert.equal(first.message.tool_calls[0].function.name, "read_note");
  assert.deepEqual(first.message.tool_calls[0].function.arguments, served.scriptedArguments);
  const messages = [...ask, first.message, { role: "tool", tool_name: "read_note", content: "hello" }];
  const second = await client.chat({ model: served.scripted, messages, tools });
  assert.equal(second.message.content, served.scriptedDone);
});

test("a schema for the answer is kept", async () => {
  const answer = await client.chat({ model: served.chat, messages: ask, format: served.pickSchema,
    options: { num_predict: 300, seed: 1 } });
  served.checkPick(JSON.parse(answer.message.content));
});

test("embeddings have length one", async () => {
  const { embeddings } = await client.embed({ model: served.stories, input: ["a", "b"] });
  assert.equal(embeddings.length, 2);
  assert.ok(Math.abs(Math.hypot(...embeddings[0]) - 1) < 1e-4);
});

test("who asks for what is not there is told so", async () => {
  await assert.rejects(client.chat({ model: "nobody", messages: ask }), (error) => error.status_code === 404);
});

test("an aborted stream ends its request", async () => {
  const stream = await client.generate({ model: served.stories, prompt: "Once", stream: true,
    options: { num_predict: 480 } });
  await assert.rejects(async () => {
    for await (const part of stream) {
      assert.ok(part);
      stream.abort();
    }
  });
  await served.allEnded();
});
