// Streamed is whole, in the real DOM: a document fed character by character ends, and stands at every tenth length, as if it had come at
// once. Frames are replaced by microtasks, so that every single length is drawn.
import assert from "node:assert/strict";
import test from "node:test";
import { openPage, takeReports } from "./browser.mjs";
import { loadTypeScript } from "./load.mjs";

const { DOCUMENTS } = await loadTypeScript("documents.ts");
const CHECK_EVERY = 10;

let it;
test.before(async () => { it = await openPage("#/gallery/bench"); });
test.after(() => it.close());

// Loads the engines for code and maths, which come when they are first needed.
async function warm(page) {
  await page.waitForFunction(() => window.lockstepBench);
  await page.evaluate(() => window.lockstepBench.show({ text: "```js\nlet a;\n```\n\n$x$", isGrowing: false }));
  await page.waitForSelector("[data-bench] math");
  await page.waitForSelector("[data-bench] .hl");
}

// Runs in the page: the first difference, or "".
async function stream([text, every]) {
  const bench = window.lockstepBench;
  const drawn = () => window.outline(document.querySelector("[data-bench]"));
  const wholes = new Map();
  for (let end = text.length; end >= 0; end -= Math.min(every, end || 1)) {
    for (const isGrowing of [true, false]) {
      bench.show();
      bench.show({ text: text.slice(0, end), isGrowing });
      wholes.set(`${end} ${isGrowing}`, drawn());
    }
  }
  bench.show();
  bench.show({ text: "", isGrowing: true });
  for (let end = 1; end <= text.length; ++end) {
    await bench.grow(text.slice(0, end));
    const whole = wholes.get(`${end} true`);
    if (whole !== undefined && whole !== drawn()) return `at ${end}: ${drawn()}\ninstead of ${whole}`;
  }
  await bench.grow(text, false);
  return drawn() === wholes.get(`${text.length} false`) ? "" : `at the end: ${drawn()}\ninstead of ${wholes.get(`${text.length} false`)}`;
}

test("streamed character by character gives the DOM of the whole", async () => {
  const bench = await it.open("#/gallery/bench");
  await warm(bench.page);
  await bench.page.evaluate(() => {
    window.requestAnimationFrame = (callback) => { queueMicrotask(callback); return 1; };
    performance.now = () => 0; // no rest between two updates
  });
  for (const [name, text] of Object.entries(DOCUMENTS)) {
    const difference = await bench.page.evaluate(stream, [text, CHECK_EVERY]);
    assert.equal(difference, "", name);
  }
  assert.deepEqual(await takeReports(bench), []);
});

test("a late engine gives what an early one gives", async () => {
  const bench = await it.open("#/gallery/bench");
  const text = "`a` $x^2$\n\n```js\nlet a;\n```\n\n$$\ny\n$$\n";
  await bench.page.waitForFunction(() => window.lockstepBench);
  await bench.page.evaluate((shown) => window.lockstepBench.show({ text: shown, isGrowing: false }), text);
  await bench.page.waitForFunction(() => document.querySelectorAll("[data-bench] math").length === 2);
  await bench.page.waitForSelector("[data-bench] .hl");
  const [late, early] = await bench.page.evaluate((shown) => {
    const drawn = () => window.outline(document.querySelector("[data-bench]"));
    const before = drawn();
    window.lockstepBench.show();
    window.lockstepBench.show({ text: shown, isGrowing: false });
    return [before, drawn()];
  }, text);
  assert.equal(late, early);
});

test("an answer is announced in whole sentences, and the rest when it is whole", async () => {
  const bench = await it.open("#/gallery/bench");
  await bench.page.waitForFunction(() => window.lockstepBench);
  const said = (text) => bench.page.waitForFunction((wanted) => document.querySelector("[role=log]").textContent === wanted, text);
  await bench.page.evaluate(() => window.lockstepBench.show({ text: "The **first** one. The se", isGrowing: true }));
  await said("The first one.");
  await bench.page.evaluate(() => window.lockstepBench.grow("The **first** one. The second one", false));
  await said("The second one");
});
