// Runs the tests that need Chromium: tests/*/*_browser_test.mjs, one file after the other.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildGallery } from "./answer/browser.mjs";
import { needChromium } from "./chromium.mjs";

const folder = new URL(".", import.meta.url).pathname;
needChromium();
const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith("_browser_test.mjs")).sort();
const page = mkdtempSync(join(tmpdir(), "lockstep-page-"));
buildGallery(page);
const run = spawnSync(process.execPath, ["--test", "--test-concurrency=1", ...names.map((name) => join(folder, name))], {
  stdio: "inherit", env: { ...process.env, LOCKSTEP_PAGE: page },
});
rmSync(page, { recursive: true });
process.exit(run.status ?? 1);
