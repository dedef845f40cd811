// Measures how soon the page is seen: node web/tests/answer/first_paint.mjs [--json FILE] [--runs N]
// A node of its own serves it from localhost, with and without 200 stored conversations; `cold`: a new browser profile, `warm`: the same
// one again, with the files in its cache. Times are those of the browser from the start of the navigation, so a busy machine lengthens
// them; processor time of the page's main thread until it can be used is the page's own. LOCKSTEP_PROGRAM names the program, as for
// run_page.mjs, whose page is measured.
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { openBrowser } from "../page/browser.mjs";
import { startAlone } from "../page/node.mjs";
import { storeConversations } from "../page/stored.mjs";
import { metrics, openMetrics } from "./measuring.mjs";

const CONVERSATIONS = 200;
const option = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);
const RUNS = Number(option("--runs") ?? 9);
const round = (value) => Math.round(value * 10) / 10;

// `usable`: somebody can type, and the list of conversations is there.
async function look({ page, client }, address, stored) {
  await page.goto("about:blank");
  const before = (await metrics(client)).TaskDuration;
  await page.goto(`${address}/#/chat`);
  await page.waitForFunction((many) => performance.getEntriesByName("first-contentful-paint").length > 0 &&
    globalThis.usableAt !== undefined && document.querySelectorAll(".list-pane li").length >= Math.min(many, 1), stored);
  const after = (await metrics(client)).TaskDuration;
  const main_thread_ms = (after < before ? after : after - before) * 1000; // another process counts from 0
  const times = await page.evaluate(() => {
    const [navigation] = performance.getEntriesByType("navigation");
    const paint = Object.fromEntries(performance.getEntriesByType("paint").map(({ name, startTime }) => [name, startTime]));
    const bytes = performance.getEntriesByType("resource").reduce((sum, { transferSize }) => sum + transferSize, navigation.transferSize);
    return { first_paint_ms: paint["first-paint"], first_contentful_paint_ms: paint["first-contentful-paint"],
      usable_ms: globalThis.usableAt, transferred_kb: bytes / 1000 };
  });
  return { ...times, main_thread_ms };
}

const watchUsable = (page) => page.addInitScript(() => {
  const isUsable = () => document.querySelector("textarea[aria-label='Message']") && document.querySelector(".list-pane");
  new MutationObserver((_, observer) => {
    if (!isUsable()) return;
    globalThis.usableAt = performance.now();
    observer.disconnect();
  }).observe(document, { subtree: true, childList: true });
});

function summary(name, runs) {
  const row = { name, runs: runs.length };
  for (const key of Object.keys(runs[0])) {
    const values = runs.map((run) => run[key]).sort((a, b) => a - b);
    row[key] = { median: round(values[values.length >> 1]), least: round(values[0]), most: round(values.at(-1)) };
  }
  return row;
}

async function measured(browser, isWarm, stored) {
  const runs = [];
  let tab;
  for (let run = 0; run < RUNS; ++run) {
    if (!tab || !isWarm) {
      await tab?.context.close();
      tab = await browser.open("#/models"); // makes the profile and its database
      if (stored > 0) await tab.page.goto(`${browser.address}/#/chat`).then(() => storeConversations(tab.page, stored));
      if (!isWarm) await emptyCache(tab);
      await watchUsable(tab.page);
      tab.client = await openMetrics(tab.page);
      if (isWarm) await look(tab, browser.address, stored);
    }
    runs.push(await look(tab, browser.address, stored));
  }
  await tab.context.close();
  return summary(`${isWarm ? "warm" : "cold"}, ${stored} conversations`, runs);
}

async function emptyCache({ page, context }) {
  const client = await context.newCDPSession(page);
  await client.send("Network.clearBrowserCache");
  await client.detach();
}

const node = await startAlone(undefined, []);
const browser = await openBrowser(node);
try {
  const load_before = loadavg().map(round);
  const rows = [];
  for (const stored of [0, CONVERSATIONS]) for (const isWarm of [false, true]) rows.push(await measured(browser, isWarm, stored));
  const result = { runs: RUNS, load_before, load_after: loadavg().map(round), rows };
  const heads = ["first paint", "first contentful", "usable", "KB", "main thread"].map((name) => name.padStart(26));
  console.log("median (least to most), ms".padEnd(28) + heads.join(""));
  for (const { name, runs: _, ...times } of rows) {
    const cells = Object.values(times).map(({ median, least, most }) => `${median} (${least} to ${most})`.padStart(26));
    console.log(name.padEnd(28) + cells.join(""));
  }
  console.log(`load of the machine: ${load_before.join(", ")} before, ${result.load_after.join(", ")} after`);
  if (option("--json")) writeFileSync(option("--json"), JSON.stringify(result, null, 2));
} finally {
  await browser.close();
  await node.stop();
}
