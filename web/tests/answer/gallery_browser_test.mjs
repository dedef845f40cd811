// Every component of an answer in every state: no serious finding of axe-core, light and dark, wide and narrow; and by keyboard alone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { openPage, takeReports } from "./browser.mjs";

const AXE = new URL("../../node_modules/axe-core/axe.min.js", import.meta.url).pathname;
const SHAPES = [{ width: 1440, height: 900 }, { width: 390, height: 844 }];

let it;
test.before(async () => { it = await openPage("#/gallery"); });
test.after(() => it.close());

async function seriousFindings(page) {
  const { violations } = await page.evaluate(() => window.axe.run("main", { resultTypes: ["violations"] }));
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").flatMap(({ id, nodes }) =>
    nodes.slice(0, 4).map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`));
}

test("the gallery has no serious finding", async () => {
  for (const viewport of SHAPES) {
    for (const colorScheme of ["light", "dark"]) {
      const { page, reports } = await it.open("#/gallery", { viewport, colorScheme, reducedMotion: "reduce" });
      await page.waitForSelector("math");
      await page.waitForSelector(".hl");
      // All of it in sight, so that nothing is left out.
      const height = await page.evaluate(() => document.querySelector(".page").scrollHeight);
      await page.setViewportSize({ width: viewport.width, height: height + 200 });
      const folded = page.locator("button[aria-expanded=false]");
      while (await folded.count() > 0) await folded.first().click();
      await page.evaluate(readFileSync(AXE, "utf8"));
      assert.deepEqual(await seriousFindings(page), [], `${viewport.width} ${colorScheme}`);
      assert.deepEqual(await takeReports({ page, reports }), [], `${viewport.width} ${colorScheme}`);
      const isWider = await page.evaluate(() => document.querySelector(".page").scrollWidth > document.querySelector(".page").clientWidth);
      assert.equal(isWider, false, `the view scrolls sideways at ${viewport.width}`);
      await page.context().close();
    }
  }
});

test("a formula is a stop of the keyboard where it is too wide, and only there", async () => {
  const { page } = await it.open("#/gallery", { viewport: SHAPES[1] });
  await page.getByRole("region", { name: "Formula" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.activeElement.scrollLeft > 0);
  await page.setViewportSize(SHAPES[0]);
  await page.getByRole("region", { name: "Formula" }).waitFor({ state: "detached" });
});

test("probabilities are read and picked by keyboard", async () => {
  const { page } = await it.open("#/gallery");
  const list = page.getByRole("listbox").first();
  await list.focus();
  const chosen = () => page.evaluate(() => {
    const box = document.activeElement;
    return document.getElementById(box.getAttribute("aria-activedescendant")).getAttribute("aria-label");
  });
  assert.equal(await chosen(), "Once, 100 %");
  await page.keyboard.press("ArrowRight");
  assert.match(await chosen(), /^␣upon, /);
  await page.keyboard.press("ArrowDown");
  assert.match(await chosen(), /, (\d+|\d\.\d) %$/);
  assert.ok(parseFloat((await chosen()).split(", ").at(-1)) < 50);
  await page.keyboard.press("End");
  assert.match(await chosen(), /^␣park, /);
  await page.keyboard.press("Home");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("0: other").waitFor();
});

test("a tool call is answered and reasoning is opened by keyboard", async () => {
  const { page } = await it.open("#/gallery");
  await page.getByRole("button", { name: /^Thought for 12.8 s/ }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("I could read the whole file").first().waitFor();
  await page.getByLabel("Result of run_command").fill("total 0");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("b: total 0").waitFor();
});

test("code is copied, also where the browser has no clipboard for the page", async () => {
  const { page } = await it.open("#/gallery", { permissions: ["clipboard-read", "clipboard-write"] });
  const copied = async () => {
    await page.getByRole("button", { name: "Copy", exact: true }).first().click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  assert.match(await copied(), /^from pathlib import Path\n[^]*lines, \{3\.14:\.1f\}"\)$/);
  await page.evaluate(() => navigator.clipboard.writeText("other"));
  await page.evaluate(() => Object.defineProperty(window, "isSecureContext", { value: false }));
  await page.getByRole("button", { name: "Copied" }).waitFor({ state: "detached" });
  assert.match(await copied(), /^from pathlib/);
});
