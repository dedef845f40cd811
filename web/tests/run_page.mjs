// Runs the tests of the page against real nodes: tests/page/*_page_test.mjs, one file after the other.
//   node web/tests/run_page.mjs [--sources] [--pictures FOLDER] [WORD...]   WORDs choose files by their names
// LOCKSTEP_PROGRAM names the program (build/release/lockstep), CHROMIUM the browser. A program that was built without the page gets one
// that is built here; with --sources each program does, so that a change of the page is tested without building the program.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needChromium } from "./chromium.mjs";
import { program } from "./page/node.mjs";

const folder = new URL("page/", import.meta.url).pathname;
const words = process.argv.slice(2);
const at = words.indexOf("--pictures");
const pictures = at < 0 ? "" : words.splice(at, 2)[1];
const sources = words.indexOf("--sources");
if (sources >= 0) words.splice(sources, 1);
const fail = (sentence) => {
  console.error(sentence);
  process.exit(1);
};
needChromium();
if (!existsSync(program)) fail(`There is no program ${program}: build it with make build, or name one with LOCKSTEP_PROGRAM.`);
const isWanted = (name) => words.length === 0 || words.some((word) => name.includes(word));
const names = readdirSync(folder).filter((name) => name.endsWith("_page_test.mjs") && isWanted(name)).sort();
if (names.length === 0) fail(`No test file has ${words.join(" or ")} in its name.`);

const out = mkdtempSync(join(tmpdir(), "lockstep-page-"));
const built = spawnSync(process.execPath, [new URL("../build.mjs", import.meta.url).pathname, join(out, "page")], { stdio: "inherit" });
if (built.status !== 0) process.exit(1);
const flags = ["--test", "--test-concurrency=1", "--test-reporter=spec"];
const { status } = spawnSync(process.execPath, [...flags, ...names.map((name) => folder + name)], {
  stdio: "inherit", env: { ...process.env, LOCKSTEP_PAGE_FOLDER: join(out, "page"), LOCKSTEP_PICTURES: pictures,
    LOCKSTEP_PAGE_SOURCES: sources < 0 ? "" : "1" },
});
rmSync(out, { recursive: true });
process.exit(status ?? 1);
