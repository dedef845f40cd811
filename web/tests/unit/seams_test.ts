import assert from "node:assert/strict";
import test from "node:test";
import { GrowingMarkdown } from "../../src/answer/markdown";
import { withSeams } from "../../src/answer/seams";
import type { Block } from "../../src/answer/tree";
import { DOCUMENTS } from "../answer/documents";

const seam = { kind: "seam", label: "S" };
const read = (text: string, at: number[]): Block[] =>
  withSeams(new GrowingMarkdown().update(text), at.map((place) => ({ at: place, label: "S" })));

test("a seam stands where the source has its place", () => {
  assert.deepEqual(read("one two", [4]),
    [{ kind: "paragraph", pieces: [[{ kind: "text", text: "one " }, seam, { kind: "text", text: "two" }]] }]);
  assert.deepEqual(read("a **bold** b", [6]), [{ kind: "paragraph", pieces: [[{ kind: "text", text: "a " },
    { kind: "strong", inlines: [{ kind: "text", text: "bo" }, seam, { kind: "text", text: "ld" }] }, { kind: "text", text: " b" }]] }]);
  assert.deepEqual(read("a\n\nb", [3]).map((block) => block.kind), ["paragraph", "seam", "paragraph"]);
  assert.deepEqual(read("a\n\nb", [1]).map((block) => block.kind), ["paragraph", "seam", "paragraph"]);
  assert.deepEqual(read("a", [0, 1, 99]).map((block) => block.kind), ["seam", "paragraph", "seam", "seam"]);
  assert.deepEqual(read("```\nab\ncd\n```", [8]),
    [{ kind: "code", language: "", text: "ab\ncd", isClosed: true, seams: [{ at: 4, label: "S" }] }]);
  assert.deepEqual(read("- x\n- yz", [7]), [{ kind: "list", isOrdered: false, start: 1, items: [
    { blocks: [{ kind: "line", pieces: [[{ kind: "text", text: "x" }]] }] },
    { blocks: [{ kind: "line", pieces: [[{ kind: "text", text: "y" }, seam, { kind: "text", text: "z" }]] }] }] }]);
});

// Takes the seams out again and joins what they parted.
function without(value: unknown): unknown {
  if (!Array.isArray(value)) {
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).filter(([name]) => name !== "seams").map(([name, inner]) => [name, without(inner)]));
  }
  const all: { kind?: string; text?: string }[] = [];
  for (const inner of value.map(without) as { kind?: string; text?: string }[]) {
    const last = all.at(-1);
    if (inner?.kind === "seam") continue;
    if (inner?.kind === last?.kind && (inner?.kind === "text" || inner?.kind === "isolate")) last!.text += inner.text!;
    else all.push(inner);
  }
  return all;
}

const countSeams = (value: unknown): number => JSON.stringify(value).split('"label":"S"').length - 1;

test("a seam at any place is shown once and changes no text", () => {
  for (const [name, text] of Object.entries(DOCUMENTS)) {
    const placed = new GrowingMarkdown().update(text);
    const whole = without(placed.map(({ block }) => block));
    for (let at = 0; at <= text.length; ++at) {
      const shown = withSeams(placed, [{ at, label: "S" }]);
      assert.equal(countSeams(shown), 1, `${name} at ${at}`);
      assert.deepEqual(without(shown), whole, `${name} at ${at}`);
    }
  }
});

test("blocks with seams stay the same objects while nothing in them changes", () => {
  const growing = new GrowingMarkdown();
  const seams = [{ at: 2, label: "S" }];
  const before = withSeams(growing.update("abc\n\nd\n\ne\n\nf\n"), seams);
  assert.equal(withSeams(growing.update("abc\n\nd\n\ne\n\nf\n\ng"), seams)[0], before[0]);
});
