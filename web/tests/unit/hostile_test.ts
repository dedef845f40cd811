import assert from "node:assert/strict";
import test from "node:test";
import { GrowingMarkdown } from "../../src/answer/markdown";
import { hostileDocuments } from "../answer/hostile";

// Characters that the rules may be tried on for one of the text. The gallery's answer needs about 220, the worst one here 780.
const WORK_PER_CHARACTER = 1_000;

test("what a hostile document costs has a limit", () => {
  for (const { name, text } of hostileDocuments()) {
    const growing = new GrowingMarkdown();
    growing.update(text);
    assert.ok(growing.work <= WORK_PER_CHARACTER * (text.length + 1_000), `${name}: ${growing.work} for ${text.length} characters`);
  }
});
