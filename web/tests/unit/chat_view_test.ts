import assert from "node:assert/strict";
import test from "node:test";
import { agesOf } from "../../src/chat/engine/ages";
import { titleOf } from "../../src/chat/engine/attach";
import { commonLength, firstDifference } from "../../src/chat/engine/compare";
import { canContinue, figuresLine, ordinal, runningLine } from "../../src/chat/engine/figures";
import { Speed } from "../../src/lib/speed";
import type { Conversation, Message } from "../../src/chat/engine/types";

const answer = (text: string, more: Partial<Message> = {}): Message => ({ id: text, conversation: "c", parent: "u", role: "assistant",
  text, created_ms: 0,
  model: "m", state: "done", ...more });

test("the line under an answer says what is known", () => {
  assert.equal(figuresLine({ tokens: 142, tokens_s: 23.1, first_s: 0.31, prompt_cached: 812, prompt_new: 34, machines: 2, joules: 41 }),
    "142 tokens, 23.1 tok/s, first 0.31 s, 812 reused + 34 new, 2 machines, 41.0 J");
  assert.equal(figuresLine({ tokens: 1, prompt_cached: 0, prompt_new: 5 }), "1 token, 5 new");
  assert.equal(figuresLine({}), "");
});

test("a running answer says what it waits for", () => {
  const show = { phase: "sent" as const, tokens: 0, waited_s: 3.4 };
  assert.match(runningLine({ ...show, place: 3 }, "m").text, /3rd in the queue, 3.00 s/);
  const prompt = runningLine({ ...show, phase: "prompt", progress: { total: 9_300, cached: 300, processed: 2_300, time_ms: 4_000 } }, "m");
  assert.equal(prompt.text, "Reading 2,300 of 9,300 tokens, 300 reused, 14.0 s left");
  assert.match(runningLine({ ...show, phase: "loading" }, "m", { read_bytes: 1 << 30, whole_bytes: 2 << 29, bytes_s: 0 }).text,
    /1.0 GiB of 1.0 GiB, 0 B\/s/);
  assert.match(runningLine({ ...show, paused: "box was lost" }, "m").text, /Paused: box was lost/);
  assert.equal(runningLine({ ...show, phase: "text", tokens: 5, tokens_s: 0 }, "m").text, "5 tokens, 0 tok/s");
});

test("ordinals", () => assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 111].map(ordinal), ["1st", "2nd", "3rd", "4th", "11th", "12th",
  "13th", "21st", "111th"]));

test("the speed falls to nothing when nothing comes", () => {
  const speed = new Speed();
  assert.equal(speed.at(0), undefined);
  for (let at = 0; at <= 1_000; at += 10) speed.add(at);
  assert.ok(Math.abs(speed.at(1_000)! - 100) < 2);
  assert.ok(speed.at(3_500)! < 30);
  assert.equal(speed.at(5_000), 0);
});

test("answers that can go on: cut ones, and those that a length ended", () => {
  assert.equal(canContinue(answer("a", { state: "cut" })), true);
  assert.equal(canContinue(answer("a", { finish: "length" })), true);
  assert.equal(canContinue(answer("a", { finish: "stop" })), false);
  assert.equal(canContinue(answer("", { state: "cut" })), false);
  assert.equal(canContinue(answer("a", { state: "cut", calls: [{ id: "k", name: "f", arguments: "{" }] })), false);
});

test("the first difference, with both distributions", () => {
  const tokens = (...list: string[]) => list.map((token) => ({ token, logprob: -1, top: [{ token: `${token}!`, logprob: -2 }] }));
  const found = firstDifference([answer("a big dog", { tokens: tokens("a", " big", " dog") }), answer("a big cat", { tokens: tokens("a",
    " big", " cat") })])!;
  assert.equal(found.at, 6);
  assert.deepEqual(found.sides.map((side) => side.next), [" dog", " cat"]);
  assert.equal(firstDifference([answer("same"), answer("same")]), undefined);
  assert.equal(firstDifference([answer("a", { state: "running" }), answer("ab", { state: "running" })]), undefined,
    "the slower one may yet write it");
  assert.equal(firstDifference([answer("a"), answer("ab")])!.sides[1].next, "b");
  assert.equal(commonLength(["x😀", "x😁"]), 1, "a pair of surrogates is one character");
});

test("conversations in groups by age", () => {
  const now = new Date(2026, 10, 26, 12).getTime();
  const at = (hours: number, pinned = false): Conversation => ({ id: String(hours), pinned,
    updated_ms: now - hours * 3_600_000 }) as Conversation;
  assert.deepEqual(agesOf([at(900, true), at(1), at(20), at(60), at(400), at(2_000)], now).map((group) => group.title),
    ["Pinned", "Today", "Yesterday", "Last 7 days", "Last 30 days", "Older"]);
});

test("the title is the first line", () => {
  assert.equal(titleOf("\n  Hello\nworld", []), "Hello");
  assert.equal(titleOf("", [{ name: "a.md" }]), "a.md");
  assert.equal(titleOf("x".repeat(99), []).length, 60);
});
