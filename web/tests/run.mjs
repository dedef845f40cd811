// Compiles the unit tests and what they import, and runs them with Node's own runner.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = new URL("unit/", import.meta.url).pathname;
const out = mkdtempSync(join(tmpdir(), "lockstep-page-"));
const names = readdirSync(folder).filter((name) => name.endsWith("_test.ts"));
await build({ entryPoints: names.map((name) => folder + name), bundle: true, platform: "node", format: "esm", outdir: out,
  outExtension: { ".js": ".mjs" } });
const run = spawnSync(process.execPath, ["--test", ...readdirSync(out).map((name) => join(out, name))], { stdio: "inherit" });
rmSync(out, { recursive: true });
process.exit(run.status ?? 1);
