// A cluster of two real nodes from the page: join by PIN, load, unload, a download that stalls, a machine that is lost.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import test, { after, before } from "node:test";
import { assertQuiet, openBrowser, picture, untilText } from "./browser.mjs";
import { startHub } from "./hub.mjs";
import { program, startMember, startSecond, STORIES, temporary, until } from "./node.mjs";

const MODEL = "stories260K";
const MIB = 1 << 20;
let hub;
let first;
let browser;

before(async () => {
  hub = await startHub();
  first = await startMember(["--name", "first"], { HF_ENDPOINT: hub.url });
  browser = await openBrowser(first);
});
after(async () => {
  await browser?.close();
  await first?.stop();
  hub?.close();
});

const main = (page) => page.getByRole("main");

// `lockstep serve --join` on a terminal, which asks for the PIN. util-linux's script plays the terminal.
function joinOnTerminal(name) {
  const home = temporary("joining");
  const command = [program, "serve", "--port", "0", "--control-port", "0", "--no-beacon", "--name", name,
    "--join", `127.0.0.1:${first.control_port}`];
  const child = spawn("script", ["-qfec", command.join(" "), "/dev/null"],
    { env: { ...process.env, LOCKSTEP_HOME: home }, stdio: ["pipe", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (piece) => { said += piece; });
  const stop = async () => {
    const gone = new Promise((done) => child.once("exit", done));
    child.stdin.write("\x03"); // Ctrl-C
    await gone;
    rmSync(home, { recursive: true, force: true });
  };
  return { type: (line) => child.stdin.write(`${line}\n`), said: () => said, stop };
}

test("a second machine joins with the PIN that every view shows", async () => {
  const tab = await browser.open("#/cluster", { control: true });
  const second = joinOnTerminal("second");
  try {
    const banner = tab.page.getByRole("status").filter({ hasText: "asks to join" });
    await banner.waitFor();
    const pin = (await banner.locator("code").innerText()).trim();
    assert.match(pin, /^\d{8}$/);
    await until(() => /PIN/.test(second.said()), "the joining node asks for the PIN");
    await picture(tab.page, "pin");
    await tab.page.goto(`${browser.address}/#/connect`);
    await banner.waitFor();
    second.type(pin);
    await banner.waitFor({ state: "detached" });
    await tab.page.goto(`${browser.address}/#/cluster`);
    await main(tab.page).getByRole("button", { name: "second", exact: true }).waitFor();
    await tab.page.getByRole("link", { name: "2 machines" }).waitFor();
    assertQuiet(tab);
  } finally {
    await second.stop();
  }
});

test("a model is loaded over two machines, answers, loses a machine, and is unloaded", async () => {
  const second = await startSecond(first, "third", { HF_ENDPOINT: hub.url });
  const tab = await browser.open("#/models", { control: true });
  const { page } = tab;
  try {
    await page.getByRole("combobox", { name: "Model", exact: true }).fill(STORIES);
    await page.getByText("Options").click();
    await page.getByRole("spinbutton", { name: "Ranks" }).fill("2");
    await page.getByRole("combobox", { name: "Draft model" }).fill(STORIES);
    await picture(page, "load");
    await page.getByRole("button", { name: "Load", exact: true }).click();
    const row = page.getByRole("article").filter({ has: page.getByRole("heading", { name: new RegExp(MODEL) }) });
    await untilText(row, (text) => /ready/.test(text) && /first/.test(text) && /third/.test(text), "the model is ready on both machines");
    assert.equal((await first.model(MODEL)).wanted.draft_model, STORIES);
    await page.goto(`${browser.address}/#/cluster`);
    await untilText(main(page), (text) => text.includes(MODEL) && text.includes("third"), "the cluster's view has both");
    await second.stop();
    await untilText(main(page), (text) => /third[^\n]*lost|lost[^\n]*third|dead/i.test(text), "the loss is told");
    await until(async () => (await first.model(MODEL))?.state === "ready", "the model is whole again on one machine");
    await page.goto(`${browser.address}/#/models`);
    await page.getByRole("button", { name: `Unload ${MODEL}` }).click();
    await page.getByRole("button", { name: `Unload ${MODEL}`, exact: true }).last().click();
    await until(async () => !(await first.model(MODEL)), "the node has unloaded the model");
    await page.getByRole("button", { name: `Unload ${MODEL}` }).waitFor({ state: "detached" });
    assertQuiet(tab);
  } finally {
    await second.stop();
  }
});

test("a download shows measured bytes, a stall as a stall, and ends when the hub goes on", async () => {
  const tab = await browser.open("#/models", { control: true });
  const { page } = tab;
  hub.hold(12 * MIB);
  const field = page.getByRole("searchbox", { name: "Words to search for on the hub" });
  await field.fill("tiny");
  await field.press("Enter");
  await page.getByText("1,234 downloads").waitFor();
  await page.getByRole("button", { name: "Download org/tiny" }).click();
  const bar = page.getByRole("progressbar", { name: "Download of org/tiny" });
  await bar.waitFor();
  const pull = async () => (await first.status()).pulls.find(({ model }) => model === "org/tiny");
  await until(async () => (await pull())?.bytes_s === 0, "the node counts no byte for five seconds");
  await untilText(main(page), (text) => /stalled for/.test(text), "the stall is told").catch(async (error) => {
    throw new Error(`${error.message}; the node says: ${JSON.stringify(await pull())}`);
  });
  const shown = Number(await bar.first().getAttribute("aria-valuenow"));
  const { read_bytes, whole_bytes } = await pull();
  assert.equal(whole_bytes, hub.bytes);
  assert.equal(shown, Math.floor((100 * read_bytes) / whole_bytes));
  assert.ok(read_bytes < whole_bytes);
  hub.release();
  await until(async () => (await pull())?.phase === "done", "the download is done");
  const row = page.getByRole("article").filter({ has: page.getByRole("heading", { name: "org/tiny" }) });
  await untilText(row, (text) => /on a disk/.test(text), "the model is on a disk");
  assertQuiet(tab);
});

test("without control there are reasons in place of buttons that would fail", async () => {
  const tab = await browser.open("#/models");
  await untilText(main(tab.page), (text) => /control/i.test(text), "the view says that it needs control");
  assert.equal(await tab.page.getByRole("button", { name: "Load", exact: true }).count(), 0);
  assertQuiet(tab);
});
