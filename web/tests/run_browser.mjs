// Runs the tests that need Chromium: tests/*/*_browser_test.mjs, one file after the other.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browserPath, buildGallery } from "./answer/browser.mjs";

const folder = new URL(".", import.meta.url).pathname;
if (!browserPath()) {
  console.error("These tests need Chromium: install Debian's chromium, or name a browser with CHROMIUM=/path/to/it.");
  process.exit(1);
}
const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith("_browser_test.mjs")).sort();
const page = mkdtempSync(join(tmpdir(), "lockstep-page-"));
buildGallery(page);
const run = spawnSync(process.execPath, ["--test", "--test-concurrency=1", ...names.map((name) => join(folder, name))], {
  stdio: "inherit", env: { ...process.env, LOCKSTEP_PAGE: page },
});
rmSync(page, { recursive: true });
process.exit(run.status ?? 1);
