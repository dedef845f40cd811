// Connect: each client's own first request against a model that answers and calls tools, and against one that cannot.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { assertQuiet, openBrowser } from "./browser.mjs";
import { scriptedModel, startAlone } from "./node.mjs";

const CLIENTS = ["open-webui", "opencode", "claude-code", "codex", "cline", "continue", "zed", "xcode", "qwen-code", "ollama", "curl",
  "python", "javascript"];
let node;
let browser;

before(async () => {
  node = await startAlone(scriptedModel({ get_weather: { city: "Bern" } }), []);
  browser = await openBrowser(node);
});
after(async () => {
  await browser?.close();
  await node?.stop();
});

test("every client has lines to copy with address and model, and its test works", async () => {
  const tab = await browser.open("#/connect");
  const links = await tab.page.getByRole("navigation", { name: "Clients" }).getByRole("link").all();
  assert.equal(links.length, CLIENTS.length);
  for (const id of CLIENTS) {
    await tab.page.goto(`${browser.address}/#/connect/${id}`);
    const card = tab.page.locator("section.card", { has: tab.page.getByRole("heading", { name: "Test" }) });
    await card.getByText(new RegExp(new URL(browser.address).port)).first().waitFor();
    await card.getByRole("button", { name: "Test", exact: true }).click();
    await card.getByText(/It works|It does not work|The answer is empty/).waitFor();
    assert.match(await card.innerText(), /It works/, id);
    const isAgent = /tool/i.test(await card.locator(".test p").first().innerText());
    if (isAgent) assert.match(await card.innerText(), /get_weather \{"city": ?"Bern"\}/, id);
    else assert.match(await card.innerText(), /I am a scripted model/, id);
  }
  assertQuiet(tab);
});

test("a copied block is what is shown, also without a clipboard of the browser", async () => {
  for (const hasClipboard of [true, false]) {
    const tab = await browser.open("#/connect/codex", { permissions: ["clipboard-read", "clipboard-write"] });
    if (!hasClipboard) await tab.page.evaluate(() => Object.defineProperty(window, "isSecureContext", { value: false }));
    const block = tab.page.getByRole("region", { name: "~/.codex/config.toml" }).first();
    await block.locator("code", { hasText: "scripted" }).waitFor(); // the model's name comes with the status
    await block.getByRole("button", { name: /^Copy/ }).click();
    await block.getByText("Copied").waitFor();
    assert.equal(await tab.page.evaluate(() => navigator.clipboard.readText()), await block.locator("code").innerText());
    assertQuiet(tab);
  }
});

test("a base model is refused with the node's own sentence and a next step", async () => {
  const stories = await startAlone(undefined, []);
  const own = await openBrowser(stories);
  try {
    const tab = await own.open("#/connect/claude-code");
    await tab.page.getByText("has no chat template that takes tools").waitFor();
    await tab.page.getByText("with a context of 512").waitFor();
    await tab.page.getByRole("button", { name: "Test", exact: true }).click();
    await tab.page.getByText("\"tools\" needs a chat template").waitFor();
    await tab.page.getByText(/is a base model/).waitFor();
    assertQuiet(tab);
  } finally {
    await own.close();
    await stories.stop();
  }
});

test("the address can be another one, and a phone reads it as a QR code", async () => {
  const tab = await browser.open("#/connect");
  const { page } = tab;
  await page.getByText("works only on the node's own machine").waitFor();
  await page.getByRole("button", { name: "QR code for a phone" }).click();
  await page.getByText("would be the phone itself").waitFor();
  await page.getByRole("textbox", { name: "Address of the node" }).fill("not an address");
  await page.getByText("This is no address").waitFor();
  await page.getByRole("textbox", { name: "Address of the node" }).fill("box.lan:8600");
  await page.getByRole("img", { name: "QR code of http://box.lan:8600/" }).waitFor();
  await page.getByText("http://box.lan:8600/v1").first().waitFor();
  assertQuiet(tab);
});
