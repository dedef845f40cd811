// The npm packages "ai" and "@ai-sdk/openai-compatible", on which OpenCode and others are built.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, Output, embed, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import * as served from "./served.mjs";

const provider = createOpenAICompatible({ name: "lockstep", baseURL: `${served.base}/v1`, includeUsage: true,
  supportsStructuredOutputs: true });
const once = { maxRetries: 0 };
const readNote = (seen) => tool({ description: "reads", inputSchema: jsonSchema(served.noteSchema),
  execute: async (input) => { seen.push(input); return "hello"; } });
const pick = tool({ description: "picks", inputSchema: jsonSchema(served.pickSchema) });

test("a text, streamed and whole, with usage", async () => {
  const whole = await generateText({ model: provider(served.scripted), prompt: "Hello", ...once });
  assert.equal(whole.text, served.scriptedPlain);
  assert.equal(whole.finishReason, "stop");
  const stream = streamText({ model: provider(served.scripted), prompt: "Hello", ...once });
  const pieces = [];
  for await (const piece of stream.textStream) pieces.push(piece);
  assert.equal(pieces.join(""), served.scriptedPlain);
  assert.ok(pieces.length > 2);
  assert.ok((await stream.usage).outputTokens > 0);
});

test("a tool is called and its result goes back, streamed and whole", async () => {
  for (const generate of [generateText, streamText]) {
    const seen = [];
    const result = await generate({ model: provider(served.scripted), prompt: "Read the note.",
      tools: { read_note: readNote(seen) }, stopWhen: stepCountIs(4), ...once });
    if (generate === streamText) await result.consumeStream();
    assert.equal(await result.text, served.scriptedDone);
    assert.deepEqual(seen, [served.scriptedArguments]);
    assert.equal((await result.steps).length, 2);
  }
});

test("required and named tools are forced, and keep the schema", async () => {
  for (const toolChoice of ["required", { type: "tool", toolName: "pick" }]) {
    const result = streamText({ model: provider(served.chat), prompt: "Pick.", tools: { pick }, toolChoice,
      maxOutputTokens: 300, ...once });
    await result.consumeStream();
    const calls = await result.toolCalls;
    assert.ok(calls.length > 0);
    for (const call of calls) served.checkPick(call.input);
  }
});

test("an object has its schema", async () => {
  const result = await generateText({ model: provider(served.chat), prompt: "Pick.", maxOutputTokens: 300, seed: 2,
    output: Output.object({ schema: jsonSchema(served.pickSchema) }), ...once });
  served.checkPick(result.output);
});

test("an embedding", async () => {
  const { embedding } = await embed({ model: provider.textEmbeddingModel(served.stories), value: "a", ...once });
  assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-4);
});

test("a mistake is the server's own sentence", async () => {
  await assert.rejects(generateText({ model: provider("nobody"), prompt: "Hello", ...once }), (error) => {
    assert.ok(APICallError.isInstance(error));
    assert.equal(error.statusCode, 404);
    assert.match(error.message, /nobody/);
    return true;
  });
});

test("an aborted stream ends its request", async () => {
  const controller = new AbortController();
  const result = streamText({ model: provider(served.chat), prompt: "Hello", abortSignal: controller.signal,
    maxOutputTokens: 400, onError: () => {}, ...once });
  for await (const piece of result.textStream) {
    assert.ok(piece);
    controller.abort();
    break;
  }
  await served.allEnded();
});
