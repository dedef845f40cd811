import assert from "node:assert/strict";
import test from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { GrowingMarkdown } from "../../src/answer/markdown";
import { PIECE_MAX } from "../../src/answer/limits";
import type { Block } from "../../src/answer/tree";
import { DOCUMENTS } from "../answer/documents";
import { SHAPES } from "../answer/shapes.mjs";

const read = (text: string): Block[] => new GrowingMarkdown().update(text).map(({ block }) => block);

test("streamed character by character gives the blocks of the whole, at every length", () => {
  for (const [name, text] of Object.entries(DOCUMENTS)) {
    const growing = new GrowingMarkdown();
    for (let end = 1; end <= text.length; ++end) {
      const part = text.slice(0, end);
      assert.deepEqual(growing.update(part).map(({ block }) => block), read(part), `${name}: ${JSON.stringify(part)}`);
    }
  }
});

test("finished blocks stay the same objects", () => {
  const growing = new GrowingMarkdown();
  const before = growing.update("a\n\nb\n\nc\n\nd\n");
  assert.equal(growing.update("a\n\nb\n\nc\n\nd\n\ne\n")[0], before[0]);
});

test("finished items and rows stay the same objects", () => {
  const growing = new GrowingMarkdown();
  const list = (text: string): unknown[] => growing.update(text).flatMap(({ block }) => (block.kind === "list" ? block.items : []));
  const before = list("- a\n- b\n- c\n- d\n- e\n");
  const after = list("- a\n- b\n- c\n- d\n- e\n- f\n");
  assert.equal(after.length, 6);
  assert.equal(after[0], before[0]);
  const rows = (text: string): unknown[] => growing.update(text).flatMap(({ block }) => (block.kind === "table" ? block.rows : []));
  const head = "| a |\n| - |\n| 1 |\n| 2 |\n| 3 |\n| 4 |\n";
  const first = rows(head);
  assert.equal(rows(`${head}| 5 |\n`)[0], first[0]);
});

test("an update costs the same however long the text is", () => {
  for (const [name, make] of Object.entries(SHAPES)) {
    const text = make(30_000);
    const growing = new GrowingMarkdown();
    const cost = (from: number): number => {
      for (let at = growing.length; at < from; at += 500) growing.update(text.slice(0, at));
      const before = growing.work;
      // As far as a piece of a paragraph is long, since a piece costs more the longer it is.
      for (let at = from; at < from + PIECE_MAX; at += 80) growing.update(text.slice(0, at));
      return (growing.work - before) / (PIECE_MAX / 80);
    };
    const [early, late] = [cost(6_000), cost(24_000)];
    // An open code block is read to its end in one step.
    assert.ok(late <= 1.5 * early + (name === "code" ? 30_000 : 6_000), `${name}: ${early} at first, ${late} at the end`);
  }
});

test("an answer that comes in pieces takes memory for itself, and not for each of its beginnings", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const text = SHAPES.mixed(200_000);
  const growing = new GrowingMarkdown();
  collect();
  const before = process.memoryUsage().heapUsed;
  let told = "";
  for (let at = 0; at < text.length; at += 100) growing.update(told += text.slice(at, at + 100));
  collect();
  const bytes = process.memoryUsage().heapUsed - before;
  assert.ok(bytes < 100 * text.length, `${Math.round(bytes / text.length)} bytes for each character`);
  assert.ok(growing.length === text.length);
});
