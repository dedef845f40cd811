// The npm package "openai" against a server: chat completions, completions, embeddings and models.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import * as served from "./served.mjs";

const client = new OpenAI({ baseURL: `${served.base}/v1`, apiKey: "none", maxRetries: 0, timeout: 60_000 });
const ask = [{ role: "user", content: "Read the note." }];
const tool = (name, parameters) => ({ type: "function", function: { name, description: name, parameters } });
const readNote = tool("read_note", served.noteSchema);
const pick = tool("pick", served.pickSchema);
const other = tool("other", served.noteSchema);

async function statusOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail("it was answered");
}

test("models are listed and one is found by its name", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.deepEqual(ids.sort(), [served.scripted, served.stories, served.chat].sort());
  assert.equal((await client.models.retrieve(served.stories)).id, served.stories);
  const error = await statusOf(client.models.retrieve("nobody"));
  assert.ok(error instanceof OpenAI.NotFoundError);
});

test("a completion has the same text streamed and whole", async () => {
  const request = { model: served.stories, prompt: "Once upon a time", max_tokens: 30, temperature: 0 };
  const whole = await client.completions.create(request);
  assert.equal(whole.usage.completion_tokens, 30);
  assert.equal(whole.choices[0].finish_reason, "length");
  let text = "";
  let usage = null;
  const stream = await client.completions.create({ ...request, stream: true, stream_options: { include_usage: true } });
  for await (const event of stream) {
    text += event.choices[0]?.text ?? "";
    usage = event.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].text);
  assert.deepEqual(usage.completion_tokens, 30);
  assert.ok(text.length > 20);
});

test("a chat has the same text streamed and whole, and its usage", async () => {
  const request = { model: served.scripted, messages: ask };
  const whole = await client.chat.completions.create(request);
  assert.equal(whole.choices[0].message.content, served.scriptedPlain);
  assert.equal(whole.choices[0].finish_reason, "stop");
  assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
  const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
  const deltas = [];
  stream.on("content", (delta) => deltas.push(delta));
  assert.equal(await stream.finalContent(), served.scriptedPlain);
  assert.equal(deltas.join(""), served.scriptedPlain);
  assert.ok(deltas.length > 2, "it came in pieces");
  const usage = await stream.totalUsage();
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
});

test("a call of the model's own will, its result, and the last words", async () => {
  const first = await client.chat.completions.create({ model: served.scripted, messages: ask, tools: [other, readNote] });
  const message = first.choices[0].message;
  assert.equal(first.choices[0].finish_reason, "tool_calls");
  assert.equal(message.tool_calls.length, 1);
  assert.equal(message.tool_calls[0].type, "function");
  assert.equal(message.tool_calls[0].function.name, "read_note");
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), served.scriptedArguments);
  const messages = [...ask, message, { role: "tool", tool_call_id: message.tool_calls[0].id, content: "It says hello." }];
  const second = await client.chat.completions.create({ model: served.scripted, messages, tools: [other, readNote] });
  assert.equal(second.choices[0].message.content, served.scriptedDone);
});

test("a streamed call is put together by the package", async () => {
  const stream = client.chat.completions.stream({ model: served.scripted, messages: ask, tools: [readNote] });
  const pieces = [];
  stream.on("chunk", (chunk) => {
    for (const call of chunk.choices[0]?.delta?.tool_calls ?? []) pieces.push(call);
  });
  const message = (await stream.finalChatCompletion()).choices[0].message;
  assert.equal(message.tool_calls[0].function.name, "read_note");
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), served.scriptedArguments);
  assert.ok(pieces[0].id && pieces[0].function.name === "read_note");
  assert.ok(pieces.slice(1).every((piece) => !piece.function.name), "the name comes once");
});

test("runTools carries a conversation through a call", async () => {
  const seen = [];
  const runner = client.chat.completions.runTools({
    model: served.scripted,
    messages: ask,
    tools: [{ type: "function", function: { name: "read_note", description: "reads", parameters: served.noteSchema,
      parse: JSON.parse, function: (given) => { seen.push(given); return "hello"; } } }],
  });
  assert.equal(await runner.finalContent(), served.scriptedDone);
  assert.deepEqual(seen, [served.scriptedArguments]);
});

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";
  const calls = async (request) => {
    const all = { model: served.chat, messages: ask, max_tokens: 300, seed: 5, ...request };
    if (!stream) return (await client.chat.completions.create(all)).choices[0];
    const kept = client.chat.completions.stream(all);
    try {
      return (await kept.finalChatCompletion()).choices[0];
    } catch (error) {
      if (!(error instanceof OpenAI.LengthFinishReasonError)) throw error;
      return kept.currentChatCompletionSnapshot.choices[0];
    }
  };

  test(`a call that is required comes, and its arguments keep the schema (${how})`, async () => {
    for (const seed of [1, 2, 3]) {
      const choice = await calls({ tools: [pick], tool_choice: "required", seed });
      assert.ok(["tool_calls", "length"].includes(choice.finish_reason));
      served.checkPicks(choice.message.tool_calls, choice.finish_reason === "length");
    }
  });

  test(`a named tool is the one that is called (${how})`, async () => {
    const choice = await calls({ tools: [other, pick], tool_choice: { type: "function", function: { name: "pick" } } });
    served.checkPicks(choice.message.tool_calls, choice.finish_reason === "length");
  });

  test(`without parallel calls there is one (${how})`, async () => {
    const choice = await calls({ tools: [pick], tool_choice: "required", parallel_tool_calls: false });
    assert.equal(choice.finish_reason, "tool_calls");
    assert.equal(choice.message.tool_calls.length, 1);
    served.checkPicks(choice.message.tool_calls, false);
  });

  test(`a schema for the answer is kept (${how})`, async () => {
    for (const seed of [1, 2, 3]) {
      const choice = await calls({ seed, response_format: {
        type: "json_schema", json_schema: { name: "pick", strict: true, schema: served.pickSchema } } });
      assert.equal(choice.finish_reason, "stop");
      served.checkPick(JSON.parse(choice.message.content));
    }
  });
}

test("with tool_choice none nothing is called", async () => {
  const answer = await client.chat.completions.create({ model: served.chat, messages: ask, tools: [pick],
    tool_choice: "none", max_tokens: 20 });
  assert.equal(answer.choices[0].message.tool_calls, undefined);
});

test("with auto no text is lost and nothing fails", async () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const answer = await client.chat.completions.create({ model: served.chat, messages: ask, tools: [pick],
      tool_choice: "auto", max_tokens: 40, seed });
    const message = answer.choices[0].message;
    assert.ok((message.content ?? "").length > 0 || message.tool_calls?.length > 0);
  }
});

test("json_object is an object", async () => {
  const answer = await client.chat.completions.create({ model: served.chat, messages: ask, seed: 3, max_tokens: 400,
    response_format: { type: "json_object" } });
  if (answer.choices[0].finish_reason === "length") return; // no bound ends it
  assert.equal(typeof JSON.parse(answer.choices[0].message.content), "object");
});

test("two choices, seeds, stop strings and a bias", async () => {
  const request = { model: served.stories, prompt: "Once upon a time", max_tokens: 24 };
  const two = await client.completions.create({ ...request, n: 2, seed: 4 });
  const again = await client.completions.create({ ...request, n: 2, seed: 4 });
  assert.equal(two.choices.length, 2);
  assert.deepEqual(again.choices.map((choice) => choice.text), two.choices.map((choice) => choice.text));
  const stopped = await client.completions.create({ ...request, temperature: 0, max_tokens: 60, stop: ["."] });
  assert.equal(stopped.choices[0].finish_reason, "stop");
  assert.ok(!stopped.choices[0].text.includes("."));
  const biased = await client.completions.create({ ...request, max_tokens: 3, logit_bias: { 400: 100 }, temperature: 0 });
  const plain = await client.completions.create({ ...request, max_tokens: 3, temperature: 0 });
  assert.notEqual(biased.choices[0].text, plain.choices[0].text);
});

test("log probabilities are those of the tokens that were chosen", async () => {
  const answer = await client.chat.completions.create({ model: served.chat, messages: ask, max_tokens: 5,
    temperature: 0, logprobs: true, top_logprobs: 3 });
  const content = answer.choices[0].logprobs.content;
  assert.ok(content.length > 0 && content.length <= 5);
  for (const token of content) {
    assert.equal(token.top_logprobs.length, 3);
    assert.ok(token.logprob <= 0);
    assert.equal(token.top_logprobs[0].token, token.token); // greedy
  }
});

test("an embedding has length one, the same as base64", async () => {
  const one = await client.embeddings.create({ model: served.stories, input: "a", encoding_format: "float" });
  const two = await client.embeddings.create({ model: served.stories, input: "a" });
  const norm = Math.hypot(...one.data[0].embedding);
  assert.ok(Math.abs(norm - 1) < 1e-4);
  two.data[0].embedding.forEach((value, i) => assert.ok(Math.abs(value - one.data[0].embedding[i]) < 1e-6));
});

test("mistakes have their classes, and name the field", async () => {
  const bad = (request) => statusOf(client.chat.completions.create({ model: served.scripted, messages: ask, ...request }));
  const temperature = await bad({ temperature: 9 });
  assert.ok(temperature instanceof OpenAI.BadRequestError);
  assert.equal(temperature.param, "temperature");
  assert.ok((await bad({ model: "nobody" })) instanceof OpenAI.NotFoundError);
  const long = await statusOf(client.completions.create({ model: served.stories, prompt: "word ".repeat(3000) }));
  assert.ok(long instanceof OpenAI.BadRequestError);
  assert.equal(long.code, "context_length_exceeded");
  const image = await bad({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:," } }] }] });
  assert.ok(image instanceof OpenAI.BadRequestError);
  const streamed = await bad({ temperature: 9, stream: true });
  assert.ok(streamed instanceof OpenAI.BadRequestError, "before the stream begins");
});

test("an aborted stream ends its request", async () => {
  const stream = await client.completions.create({ model: served.stories, prompt: "Once", max_tokens: 480, stream: true });
  for await (const event of stream) {
    assert.ok(event.choices);
    break; // leaves and aborts
  }
  const controller = new AbortController();
  const whole = client.completions.create({ model: served.stories, prompt: "Once", max_tokens: 480 },
    { signal: controller.signal });
  setTimeout(() => controller.abort(), 30);
  await whole.catch((error) => assert.ok(error instanceof OpenAI.APIUserAbortError));
  await served.allEnded();
});
