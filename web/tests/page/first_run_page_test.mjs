// The first-run card on `serve --demo`: a story, a pulled plug, the same story again, three doors; by keyboard alone.
import assert from "node:assert/strict";
import test from "node:test";
import { assertQuiet, openBrowser, picture } from "./browser.mjs";
import { SLOW, startAlone, startMember, STORIES, undisturbed } from "./node.mjs";

// Every state of the card from now on, since the loss may last for less than a look from here takes.
const keepWhatIsShown = (page) => page.evaluate(() => {
  const card = document.querySelector(".first-run");
  globalThis.shown = [card.textContent];
  new MutationObserver(() => { if (globalThis.shown.at(-1) !== card.textContent) globalThis.shown.push(card.textContent); })
    .observe(card, { subtree: true, childList: true, characterData: true });
});

test("a story is told, a plug is pulled, and the text is the same", async (run) => {
  const node = await startAlone(STORIES, [...SLOW, "--demo"]);
  run.after(() => node.stop());
  const browser = await openBrowser(node);
  run.after(() => browser.close());
  const tab = await browser.open("#/chat", { control: true });
  const { page } = tab;
  const tell = page.getByRole("button", { name: "Tell the story" });
  await tell.waitFor();
  await page.waitForFunction(() => document.activeElement?.textContent === "Tell the story");
  await page.getByText("Two processes on this machine share one model.").waitFor();
  await page.getByText(/slowed on purpose/).waitFor();
  await picture(page, "first-run");
  await page.keyboard.press("Enter");
  await page.getByText(/[1-9]\d* tokens, [\d.]+ tok\/s/).waitFor();
  await keepWhatIsShown(page);
  await page.getByRole("button", { name: "Pull a plug" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Same text as without the loss, byte for byte").waitFor();
  await page.getByText("Plugs pulled 1, streams lost 0, wrong tokens 0").waitFor();
  const shown = await page.evaluate(() => globalThis.shown);
  const isLoss = (text) => text.includes("A worker was killed; the text waits") && text.includes("plug pulled");
  assert.ok(shown.some(isLoss), "the loss is shown");
  assert.ok(shown.every((text) => text.includes("Two processes on this machine share one model.")), "also while a worker is missing");
  const expected = await undisturbed(node, "/v1/completions", { prompt: "Once upon a time", max_tokens: 200, temperature: 0, seed: 1 });
  assert.equal(await page.locator(".story").evaluate((story) => story.textContent.replaceAll("⚡", "")), `Once upon a time${expected}`);
  for (const door of ["Load a model that fits here", "Add a machine", "Use it from your tools"]) {
    await page.getByRole("heading", { name: door }).waitFor();
  }
  await page.getByText(/tok\/s predicted/).first().waitFor();
  await picture(page, "first-run-done");
  assertQuiet(tab);
});

test("a text that differs is said in red, with its place", async (run) => {
  const node = await startAlone(STORIES, [...SLOW, "--demo"]);
  run.after(() => node.stop());
  const browser = await openBrowser(node);
  run.after(() => browser.close());
  const tab = await browser.open("#/chat", { control: true });
  const { page } = tab;
  let stories = 0;
  await page.route("**/v1/completions", (route) => { // the second telling is another story
    stories += 1;
    const body = JSON.parse(route.request().postData());
    return route.continue(stories === 2 ? { postData: JSON.stringify({ ...body, temperature: 2, seed: 7 }) } : {});
  });
  await page.getByRole("button", { name: "Pull a plug" }).click();
  await page.getByText(/Another text from token \d+ on/).waitFor();
  await page.getByText(/wrong tokens [1-9]/).waitFor();
  assert.equal(stories, 2);
});

test("without a model, the first door fills the form that loads the model that was chosen there", async (run) => {
  const node = await startMember();
  run.after(() => node.stop());
  const browser = await openBrowser(node);
  run.after(() => browser.close());
  const tab = await browser.open("#/chat", { control: true });
  const { page } = tab;
  await page.getByRole("heading", { name: "No model is loaded yet" }).waitFor();
  const door = page.getByRole("region", { name: "Load a model that fits here" });
  const link = door.getByRole("link").first();
  await link.waitFor();
  const wanted = new URLSearchParams((await link.getAttribute("href")).split("?")[1]).get("load");
  assert.match(wanted, /^[^/]+\/[^/]+$/);
  await link.click();
  await page.getByRole("heading", { name: "Models", exact: true }).waitFor();
  await page.waitForFunction((name) => document.getElementById("load-model")?.value === name, wanted);
  assertQuiet(tab);
});
