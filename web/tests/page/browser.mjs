// Chromium with pages that report every sign of a fault: errors, refusals of the policy, requests to anywhere else.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch } from "../chromium.mjs";
import { pageOf } from "./node.mjs";

export const WIDE = { width: 1440, height: 900 };
export const PHONE = { width: 390, height: 844 };
const WAIT_MS = 60_000; // for a condition; never for a time to pass

// The page of `node` in one browser. `expected` are texts of console errors that the scenario provokes.
export async function openBrowser(node) {
  const served = await pageOf(node);
  const browser = await launch();
  const close = async () => {
    await browser.close();
    served.close();
  };
  // A page in a browser profile of its own; `context` reuses that of another page, as a second tab does.
  const open = async (route = "#/chat", { context, control = false, ...options } = {}) => {
    const profile = context ?? (await browser.newContext({ viewport: WIDE, ...options }));
    profile.setDefaultTimeout(WAIT_MS);
    const page = await profile.newPage();
    const faults = watch(page, served.address);
    await page.goto(control ? node.controlAddress(served.address) : served.address);
    await page.goto(`${served.address}/${route}`);
    await page.waitForFunction(isOpen, route.split(/[/?]/)[1]);
    return { page, faults, context: profile };
  };
  return { address: served.address, open, close };
}

// In the page: `view` has taken the place of the first one, and its code has loaded.
function isOpen(view) {
  const views = document.querySelector("nav[aria-label='Views']");
  const isCurrent = views?.querySelector("[aria-current]") === views?.querySelector(`[href='#/${view}']`);
  return views && isCurrent && !/Opening…/.test(document.querySelector("main").innerText);
}

function watch(page, address) {
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    // Refusals of the node are part of its answers; the browser lists each as an error of loading.
    if (message.type() === "error" && !/^Failed to load resource/.test(message.text())) faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address) && !url.startsWith("data:") && !url.startsWith("blob:")) faults.push(`request: ${url}`);
  });
  page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  return faults;
}

export function assertQuiet({ faults }) {
  assert.deepEqual(faults, []);
}

// The picture's file if LOCKSTEP_PICTURES names a folder.
export async function picture(page, name) {
  const folder = process.env.LOCKSTEP_PICTURES;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled", caret: "hide" });
}

export const sendMessage = async (page, text) => {
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await field.fill(text);
  await field.press("Enter");
};

export const answers = (page) => page.getByRole("article", { name: /^Answer of/ });

// Waits until the page's text satisfies `holds`, which runs in this process.
export async function untilText(locator, holds, what) {
  const deadline = Date.now() + WAIT_MS;
  let text = "";
  do {
    text = await locator.innerText().catch(() => "");
    if (holds(text)) return text;
    await locator.page().evaluate(() => new Promise((done) => requestAnimationFrame(done)));
  } while (Date.now() < deadline);
  throw new Error(`${what}; the text is: ${text}`);
}
