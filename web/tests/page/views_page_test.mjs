// Every view on a phone and on a desk, light and dark: a picture, no serious finding of axe-core, nothing wider than the screen, and
// everything that can be operated is reached by the keyboard alone.
import assert from "node:assert/strict";
import { cpSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { answers, assertQuiet, openBrowser, PHONE, picture, sendMessage, untilText, WIDE } from "./browser.mjs";
import { run, startMember, startSecond, STORIES, temporary } from "./node.mjs";
import { setSettings, storeConversations } from "./stored.mjs";

const VIEWS = ["chat", "cluster", "models", "activity", "connect"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TABS_MAX = 400; // presses of Tab until a view must have been walked through
let node;
let second;
let browser;
let model;

before(async () => {
  model = join(temporary("models"), "stories260K"); // its path is in the pictures
  cpSync(STORIES, model, { recursive: true });
  node = await startMember([model, "--name", "anna"]);
  second = await startSecond(node, "berta");
  browser = await openBrowser(node);
});
after(async () => {
  await browser?.close();
  await second?.stop();
  await node?.stop();
});

const isDrawn = (page) => page.waitForFunction(() => document.querySelector("main h1, main h2, main h3"));

async function prepare(tab, view) {
  if (view === "chat") {
    await storeConversations(tab.page, 12);
    await tab.page.reload();
    await setSettings(tab.page, { temperature: "0", max_tokens: "150" });
    await sendMessage(tab.page, "Once upon a time");
    await answers(tab.page).last().getByRole("button", { name: "Copy the answer" }).waitFor();
    await tab.page.getByRole("textbox", { name: "Message", exact: true }).fill("The next day");
    await tab.page.locator(".composer .cost").waitFor();
  }
  if (view === "activity") {
    await fetch(`${node.url}/v1/completions`, { method: "POST", body: JSON.stringify({ prompt: "A", max_tokens: 4 }) });
  }
  await isDrawn(tab.page);
}

async function findings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const place = ({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`;
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(place).join("; ")}`);
}

for (const view of VIEWS) {
  for (const [size, viewport] of [["1440", WIDE], ["390", PHONE]]) {
    test(`${view} at ${size}: light and dark, axe-core, no sideways scrolling`, async () => {
      const tab = await browser.open(`#/${view}`, { viewport, control: size === "1440" });
      await prepare(tab, view);
      for (const scheme of ["light", "dark"]) {
        await tab.page.emulateMedia({ colorScheme: scheme });
        await picture(tab.page, `${view}-${size}-${scheme}`);
        assert.deepEqual(await findings(tab.page), [], `${view} ${size} ${scheme}`);
      }
      const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `the page is ${wide} pixels wider than the screen`);
      assertQuiet(tab);
      await tab.context.close();
    });
  }

  test(`${view}: the keyboard alone reaches everything that can be operated, and focus is seen`, async () => {
    const tab = await browser.open(`#/${view}`, { control: true });
    await prepare(tab, view);
    const { page } = tab;
    const wanted = await page.evaluate(() => {
      const isUsable = (one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true });
      const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(isUsable);
      all.forEach((one, at) => { one.dataset.walk = String(at); });
      document.activeElement?.blur();
      return all.length;
    });
    assert.ok(wanted > 5);
    const seen = new Set();
    const unseen = [];
    for (let press = 0; press < TABS_MAX; ++press) {
      await page.keyboard.press("Tab");
      const now = await page.evaluate(() => {
        const one = document.activeElement;
        if (!one || one === document.body) return null;
        // Seen is what changes when the focus goes: on the element, or on a frame around it.
        const around = [one, one.parentElement, one.parentElement?.parentElement].filter(Boolean);
        const looks = () => around.map((it) => {
          const { outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor } = getComputedStyle(it);
          return [outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor].join();
        }).join();
        const focused = looks();
        one.blur();
        const isShown = looks() !== focused;
        one.focus();
        return { at: one.dataset.walk, isShown, name: one.outerHTML.slice(0, 120) };
      });
      if (!now) continue; // past the last one; the next press begins at the first
      if (now.at !== undefined && seen.has(now.at)) break;
      if (now.at !== undefined) seen.add(now.at);
      if (!now.isShown) unseen.push(now.name);
    }
    const missed = await page.evaluate((reached) => [...document.querySelectorAll("[data-walk]")]
      .filter((one) => !reached.includes(one.dataset.walk) && !one.disabled && one.type !== "radio")
      .filter((one) => one.checkVisibility({ visibilityProperty: true }))
      .map((one) => one.outerHTML.slice(0, 120)), [...seen]);
    assert.deepEqual(missed, [], `${seen.size} of ${wanted} were reached`);
    assert.deepEqual(unseen, [], "focus is visible");
    assertQuiet(tab);
    await tab.context.close();
  });
}

test("views and commands by keys: Alt and a digit, Ctrl-K, Escape", async () => {
  const tab = await browser.open("#/chat");
  const { page } = tab;
  for (const [at, view] of VIEWS.entries()) {
    await page.keyboard.press(`Alt+${at + 1}`);
    await page.waitForURL(new RegExp(`#/${view}$`));
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search commands" }).fill("theme dark");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  await page.keyboard.press("Control+k");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Commands" }).waitFor({ state: "hidden" });
  assertQuiet(tab);
});

test("a model over two machines is a line between them, with both parts and the link in the tables", async () => {
  run(["load", model, "--ranks", "2", "--parallel", "tensor", "--nodes", "anna,berta", "--port", String(node.port)], node.home);
  const { placement } = await node.model("stories260K");
  const leads = placement.find(({ rank }) => rank === 0).node_name === "anna"; // its node has measured the link
  const other = leads ? browser : await openBrowser(second);
  try {
    const tab = await other.open("#/cluster", { control: true });
    const isWhole = (text) => ["rank 0, layers 0–4", "rank 1, layers 0–4", "Gbit/s"].every((words) => text.includes(words));
    await untilText(tab.page.getByRole("main"), isWhole, "both parts and their measured link are shown");
    await picture(tab.page, "two-machines");
    assertQuiet(tab);
  } finally {
    if (!leads) await other.close();
  }
});
