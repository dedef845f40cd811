// What the suites know of the server that run_clients.py has started for them.
import assert from "node:assert/strict";

export const base = process.env.LOCKSTEP_BASE; // http://localhost:PORT
export const stories = "stories260K"; // a small trained model without a chat template
export const chat = "stories-chat"; // the same with one, and a longer context
export const scripted = "scripted"; // calls `read_note`, and says that it has an answer
export const scriptedPlain = "I am a scripted model, and this is all I say.";
export const scriptedDone = "The tool has answered, and the task is done.";
export const scriptedArguments = { path: "note.txt" };

// The server forgets a request within a step of its client's leaving.
export async function allEnded() {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const status = await (await fetch(`${base}/cluster/status`)).json();
    const running = status.models.reduce((sum, model) => sum + model.running, 0);
    if (running === 0) return;
    assert.ok(Date.now() < deadline, `${running} requests still run`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// As tools and as schemas: bounded, so that any model that is held to them comes to an end.
export const pickSchema = {
  type: "object",
  properties: {
    color: { type: "string", enum: ["red", "green", "blue"] },
    count: { type: "integer", minimum: 0, maximum: 99 },
    sure: { type: "boolean" },
  },
  required: ["color", "count", "sure"],
  additionalProperties: false,
};

export function checkPick(value) {
  assert.deepEqual(Object.keys(value).sort(), ["color", "count", "sure"]);
  assert.ok(pickSchema.properties.color.enum.includes(value.color), JSON.stringify(value));
  assert.ok(Number.isInteger(value.count) && value.count >= 0 && value.count <= 99, JSON.stringify(value));
  assert.equal(typeof value.sure, "boolean");
}

// A model of this size goes on calling until its tokens are used up: then the last call may be cut.
export function checkPicks(calls, wasCut) {
  const whole = wasCut ? calls.slice(0, -1) : calls;
  assert.ok(whole.length > 0, "no whole call");
  for (const call of whole) {
    assert.equal(call.function.name, "pick");
    checkPick(JSON.parse(call.function.arguments));
  }
}

export const noteSchema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
