// 200 stored conversations: all of them are listed, found by a word of their text, and open. How long it takes is measured and printed; it
// is no condition, since machines differ.
import assert from "node:assert/strict";
import test from "node:test";
import { answers, assertQuiet, openBrowser } from "./browser.mjs";
import { startAlone } from "./node.mjs";
import { storeConversations } from "./stored.mjs";

const MANY = 200;
const ROUNDS = 5;

test("a history of 200 conversations opens, is searched and exported", async (run) => {
  const node = await startAlone(undefined, []);
  run.after(() => node.stop());
  const browser = await openBrowser(node);
  run.after(() => browser.close());
  const tab = await browser.open("#/chat");
  const { page } = tab;
  await storeConversations(page, MANY);
  const times = [];
  for (let round = 0; round < ROUNDS; ++round) {
    await page.reload();
    times.push(await page.evaluate((many) => new Promise((done) => {
      const look = () => {
        const links = document.querySelectorAll("nav[aria-label='Conversations'] a");
        if (links.length >= many) requestAnimationFrame(() => done(performance.now())); // since the page was asked for
        else requestAnimationFrame(look);
      };
      look();
    }), MANY));
  }
  run.diagnostic(`200 conversations are listed ${Math.min(...times).toFixed(0)} ms after the page was asked for (best of ${ROUNDS})`);
  const links = page.getByRole("navigation", { name: "Conversations" }).getByRole("link");
  assert.equal(await links.count(), MANY);
  await page.getByRole("searchbox", { name: "Search titles and texts" }).fill("Conversation 137");
  await links.filter({ hasText: "Conversation 137" }).click();
  await answers(page).getByText("137 The fox").first().waitFor();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "History" }).click();
  await page.getByRole("menuitem", { name: "Export everything", exact: true }).click();
  assert.match((await download).suggestedFilename(), /\.jsonl$/);
  assertQuiet(tab);
});
