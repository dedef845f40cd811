import assert from "node:assert/strict";
import test from "node:test";
import { GrowingMarkdown } from "../../src/answer/markdown";
import type { Block } from "../../src/answer/tree";
import { DOCUMENTS } from "../answer/documents";

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
