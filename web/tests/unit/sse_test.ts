import assert from "node:assert/strict";
import test from "node:test";
import { EventParser } from "../../src/lib/sse";

const STREAM = ": hello\r\nevent: change\r\nid: 7\r\ndata: {\"a\":1}\r\n\r\ndata: one\ndata: two\n\nid: 8\ndata:three\n\n";

test("events are the same however the stream is cut", () => {
  const whole = new EventParser().push(STREAM);
  assert.deepEqual(whole, [
    { event: "change", data: '{"a":1}', id: "7" },
    { event: "message", data: "one\ntwo", id: "7" },
    { event: "message", data: "three", id: "8" },
  ]);
  for (let cut = 1; cut < STREAM.length; ++cut) {
    const parser = new EventParser();
    assert.deepEqual([...parser.push(STREAM.slice(0, cut)), ...parser.push(STREAM.slice(cut))], whole);
  }
});

test("an event without an end is refused at the limit", () => {
  const parser = new EventParser();
  assert.throws(() => parser.push("data: " + "x".repeat(5 << 20)), RangeError);
});
