// A built page in Chromium, served by web/dev.mjs with the node's headers, over a node that knows nothing. Every sign that something of
// an answer ran or left the page is kept in `reports`.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "../chromium.mjs";

const web = new URL("../../", import.meta.url).pathname;

function emptyNode() {
  const status = { version: "0", control: false, nodes: [], models: [], pulls: [], happened: [] };
  const server = createServer((from, to) => {
    if (from.url === "/cluster/events") {
      to.writeHead(200, { "content-type": "text/event-stream" });
      return to.write(`event: snapshot\ndata: ${JSON.stringify(status)}\n\n`);
    }
    const body = from.url === "/v1/session" ? { control: false, key: false, keys_needed: false } : { object: "list", data: [] };
    to.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

function servePage(out, node) {
  const child = spawn(process.execPath, [join(web, "dev.mjs"), out, "0", node], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((done, fail) => {
    child.once("exit", (code) => fail(new Error(`web/dev.mjs ended with ${code}`)));
    child.stdout.once("data", (line) => done({ child, address: String(line).trim() }));
  });
}

// The folder that LOCKSTEP_PAGE names, else a new build.
function builtPage() {
  if (process.env.LOCKSTEP_PAGE) return { out: process.env.LOCKSTEP_PAGE, remove: () => {} };
  const out = mkdtempSync(join(tmpdir(), "lockstep-page-"));
  buildGallery(out);
  return { out, remove: () => rmSync(out, { recursive: true }) };
}

export function buildGallery(out) {
  const { status } = spawnSync(process.execPath, [join(web, "build.mjs"), out, "--gallery"], { stdio: "inherit" });
  if (status !== 0) throw new Error("the page was not built");
}

// `path` is a hash route, `context` goes to Playwright's newContext, `own` is an HTTP server in the place of the empty node.
export async function openPage(path, context = {}, flags = [], own = undefined) {
  const { out, remove } = builtPage();
  const node = own ?? await emptyNode();
  const { child, address } = await servePage(out, `http://127.0.0.1:${node.address().port}`);
  const browser = await launch(flags);
  const close = async () => {
    await browser.close();
    child.removeAllListeners("exit");
    child.kill();
    node.closeAllConnections();
    node.close();
    remove();
  };
  const open = async (route, options) => {
    const page = await (await browser.newContext({ viewport: { width: 1000, height: 800 }, ...options })).newPage();
    const reports = await watch(page, address);
    await page.goto(address + route);
    return { page, reports };
  };
  return { ...(await open(path, context)), address, browser, open, close };
}

async function watch(page, address) {
  const reports = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && reports.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => reports.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => { reports.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("popup", (popup) => reports.push(`popup: ${popup.url()}`));
  page.on("framenavigated", (frame) => frame.url().startsWith(address) || reports.push(`navigation: ${frame.url()}`));
  page.on("frameattached", () => reports.push("a frame was made"));
  page.on("request", (request) => request.url().startsWith(address) || request.url().startsWith("data:image/svg+xml,%3Csvg") ||
    reports.push(`request: ${request.url()}`));
  await page.addInitScript(() => {
    globalThis.reports = [];
    // The visible content of an element: tags, attributes and text, without the comments that Svelte leaves.
    globalThis.outline = function outline(node) {
      if (node.nodeType === Node.TEXT_NODE) return node.data;
      if (node.nodeType !== Node.ELEMENT_NODE) return "";
      const attributes = [...node.attributes].map(({ name, value }) => ` ${name}=${JSON.stringify(value)}`).sort().join("");
      return `<${node.localName}${attributes}>${[...node.childNodes].map(outline).join("")}</>`;
    };
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) =>
      globalThis.reports.push(`policy: ${violatedDirective} ${blockedURI} ${sample}`));
  });
  return reports;
}

// The reports of the page and of the policy, which are then forgotten.
export async function takeReports({ page, reports }) {
  const policy = await page.evaluate(() => globalThis.reports.splice(0));
  return [...reports.splice(0), ...policy];
}
