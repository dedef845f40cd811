import assert from "node:assert/strict";
import test from "node:test";
import { codeLines } from "../../src/answer/code_lines";
import { codeParts, turnsDirection } from "../../src/answer/controls";
import { decodeEntities } from "../../src/answer/entities";
import { grouped } from "../../src/answer/groups";
import { pieces } from "../../src/answer/inlines";
import { prettyJson } from "../../src/answer/json_pretty";
import { CODE_CHUNK_LINES, HREF_MAX, MATHS_MAX, PIECE_MAX } from "../../src/answer/limits";
import { safeHref } from "../../src/answer/links";
import { inlineMaths } from "../../src/answer/maths_rules";
import { levelOf, percent, tokenName } from "../../src/answer/probability";
import { SentenceReader, spoken } from "../../src/answer/sentences";
import { nextPart } from "../../src/answer/step";
import { timelineRows, timelineShape } from "../../src/answer/timeline_shape";
import { WordCounter } from "../../src/answer/word_count";

test("only whole addresses of the web and of mail become links", () => {
  assert.equal(safeHref("HTTPS://A.example/x y"), "https://a.example/x%20y");
  assert.equal(safeHref("mailto:a@b.example"), "mailto:a@b.example");
  for (const written of ["", "javascript:x", "java\nscript:x", "\u0001javascript:x", "data:text/html,x", "file:///x", "//a.example", "/x",
    "#/connect", "x", "https://", "https://a.example@b.example/", "https://u:p@b.example/", `https://a.example/${"x".repeat(HREF_MAX)}`]) {
    assert.equal(safeHref(written), null, written);
  }
});

test("hidden characters get their names", () => {
  assert.deepEqual(codeParts("a\u202Eb\u200B\u{E0041}"), [{ text: "a", isControl: false }, { text: "U+202E", isControl: true },
    { text: "b", isControl: false }, { text: "U+200B", isControl: true }, { text: "U+E0041", isControl: true }]);
  assert.deepEqual(codeParts("a\tb\n\u05D0é😀"), [{ text: "a\tb\n\u05D0é😀", isControl: false }]);
  assert.equal(turnsDirection("\u2066"), true);
  assert.equal(turnsDirection("\u05D0 plain Hebrew"), false);
});

test("entities", () => {
  assert.equal(decodeEntities("&lt;&gt;&amp;&quot;&apos;&copy;&yuml;&alpha;&Omega;&sigmaf;&rarr;&#65;&#x1F600;"), "<>&\"'©ÿαΩς→A😀");
  assert.equal(decodeEntities("&nope; & &; &#; &#x; &lt"), "&nope; & &; &#; &#x; &lt");
  assert.equal(decodeEntities("&#0;&#xD800;&#x110000;"), "\uFFFD\uFFFD\uFFFD");
  assert.equal(decodeEntities("&amp;lt;"), "&lt;");
});

test("what is maths and what is money", () => {
  const source = (text: string, before = ""): string | undefined => inlineMaths(text, before)?.source;
  assert.equal(source("$x$ and"), "x");
  assert.equal(source("$x_1 + \\$5$"), "x_1 + \\$5");
  assert.equal(source("$2 \\times 3$"), "2 \\times 3");
  assert.equal(source("$$ x $$"), "x");
  assert.equal(source("\\(a\\)b"), "a");
  assert.equal(source("\\[a\\]"), "a");
  for (const text of ["$5 and $6", "$ x$", "$x $", "$5/month or 6$", "$x$y", "$x$5", "$a `b$` c$", "$", "$$", "$$$", "\\(a", "\\\\(a\\)",
      `$${"x".repeat(MATHS_MAX + 9)}$`]) {
    assert.equal(source(text), undefined, text);
  }
  assert.equal(source("$7 to US$", "US"), undefined);
  assert.equal(source("$x$", "其中"), "x");
});

test("long text is cut at the same places while it grows", () => {
  const text = "A sentence of some words. ".repeat(1_000);
  const whole = pieces(text);
  assert.equal(whole.join(""), text);
  assert.ok(whole.every((piece) => piece.length <= PIECE_MAX));
  assert.ok(whole.slice(0, -1).every((piece) => piece.endsWith(". ")));
  for (const length of [PIECE_MAX, PIECE_MAX + 1, 9_000, 15_000]) {
    const part = pieces(text.slice(0, length));
    assert.deepEqual(part.slice(0, -1), whole.slice(0, part.length - 1));
  }
  const faces = pieces("😀".repeat(PIECE_MAX));
  assert.ok(faces.every((piece) => /^(😀)*$/u.test(piece)));
});

test("code is cut into chunks of lines that stay the same objects", () => {
  const lines = codeLines();
  const text = "line\n".repeat(CODE_CHUNK_LINES * 2 + 5);
  const before = lines.chunks([{ text, scope: "" }], [], 0);
  assert.deepEqual(before.map((chunk) => chunk[0].text.split("\n").length - 1), [CODE_CHUNK_LINES, CODE_CHUNK_LINES, 5]);
  const after = lines.chunks([{ text: `${text}more`, scope: "" }], [], 0);
  assert.equal(after[0], before[0]);
  assert.equal(after[1], before[1]);
  assert.equal(after.flat().map((leaf) => leaf.text).join(""), `${text}more`);
  const leaves = [{ text: "let ", scope: "keyword" }, { text: "a;\n", scope: "" }];
  const seam = codeLines().chunks(leaves, [{ at: 5, label: "here" }], 1);
  assert.deepEqual(seam.flat(),
    [{ text: "let ", scope: "keyword" }, { text: "a", scope: "" }, { text: "here", scope: "seam" }, { text: ";\n", scope: "" }]);
  assert.deepEqual(codeLines().chunks(leaves, [{ at: 5, label: "here" }], 0).flat(),
    [{ text: "let a", scope: "" }, { text: "here", scope: "seam" },
    { text: ";\n", scope: "" }]);
});

test("groups that did not change are the same arrays", () => {
  const before = grouped([], [1, 2, 3, 4, 5], 2);
  const after = grouped(before, [1, 2, 3, 4, 5, 6], 2);
  assert.deepEqual(after, [[1, 2], [3, 4], [5, 6]]);
  assert.equal(after[0], before[0]);
  assert.notEqual(after[2], before[2]);
});

test("JSON that grows is laid out without a change of what it says", () => {
  const written = '{"a":[1,{"b":"x, {y}: \\"z\\""}],"c":{},"d":[],"e":null}';
  assert.equal(prettyJson(written).text, JSON.stringify(JSON.parse(written), null, 2));
  assert.equal(prettyJson(written).isWhole, true);
  for (let end = 0; end < written.length; ++end) {
    const { text, isWhole } = prettyJson(written.slice(0, end));
    assert.equal(isWhole, end === 0);
    assert.ok(JSON.stringify(JSON.parse(written), null, 2).startsWith(text.trimEnd()), text);
  }
  assert.deepEqual(prettyJson("not json"), { text: "not json", isJson: false, isWhole: false });
});

test("a screen reader hears whole sentences, once each", () => {
  const text = "# Head\n\nThe **first** one. The *second* one! See [a page](https://a.example).\n\n```js\nlet a;\nlet b;\n```\n\n- [x] done\n\nThe e";
  const reader = new SentenceReader();
  let heard = "";
  for (let end = 1; end <= text.length; ++end) {
    const said = reader.next(text.slice(0, end), true);
    if (said !== "") heard += `|${said}`;
  }
  assert.equal(heard, "|Head|The first one.|The second one!|See a page.|Code, js, 2 lines.|done");
  assert.equal(reader.next(text, false), "The e");
  assert.equal(reader.next(text, false), "");
  assert.equal(spoken("`x` and __y__ | z"), "x and y | z");
});

test("words are counted as they come", () => {
  const text = "  One two\nthree-four  five ";
  const counter = new WordCounter();
  for (let end = 0; end <= text.length; ++end) {
    assert.equal(counter.count(text.slice(0, end)), text.slice(0, end).split(/\s+/).filter(Boolean).length);
  }
  assert.equal(counter.count("another text"), 2);
});

test("probabilities in words and steps", () => {
  assert.deepEqual([0, -0.2, -1, -2, -5, -Infinity, NaN].map(levelOf), [4, 3, 2, 1, 0, 0, 0]);
  assert.deepEqual([0, -0.1, -4, -8, -20, -Infinity].map(percent), ["100 %", "90 %", "1.8 %", "0.03 %", "under 0.01 %", "under 0.01 %"]);
  assert.deepEqual([" ", "   ", "", " a\n", "\t"].map(tokenName), ["space", "3 spaces", "nothing", "␣a⏎", "⇥"]);
});

test("the timeline names the slowest token and lets one pause not flatten the rest", () => {
  const shape = timelineShape([10, 10, 400, 10, 12], 8);
  assert.equal(shape.slowest, 2);
  assert.equal(shape.median_ms, 10);
  assert.equal(shape.top_ms, 40);
  assert.equal((shape.bars.match(/z/g) ?? []).length, 5);
  assert.equal((shape.cut.match(/z/g) ?? []).length, 1);
  assert.equal(shape.ghost_y, 64);
  assert.equal(timelineShape([]).bars, "");
  assert.deepEqual(timelineRows([1, 3]),
    [{ first: 1, last: 1, mean_ms: 1, slowest_ms: 1 }, { first: 2, last: 2, mean_ms: 3, slowest_ms: 3 }]);
  const rows = timelineRows(Array.from({ length: 1_001 }, (_, at) => at));
  assert.ok(rows.length <= 40);
  assert.equal(rows.at(-1)!.last, 1_001);
});

test("a text that has grown much is shown in steps, without half characters", () => {
  assert.equal(nextPart("abcdef", 2, 10), "abcdef");
  assert.equal(nextPart("abcdef", 2, 3), "abcde");
  assert.equal(nextPart("ab", 5, 3), "ab", "another text");
  const text = "a😀".repeat(50);
  let shown = "";
  for (let steps = 0; shown !== text; ++steps) {
    const next = nextPart(text, shown.length, 4);
    assert.ok(next.length > shown.length && next.length <= shown.length + 5 && next.isWellFormed() && steps < 100);
    shown = next;
  }
});
