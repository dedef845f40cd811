// The size of the first load has a limit; the parts that are loaded later are listed.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { root, temporary } from "./node.mjs";

const FIRST_LOAD_MAX = 110 * 1000; // bytes by gzip -9: index, main, what main imports, styles

test("the first load is at most 110 KB of gzip", (run) => {
  const out = join(temporary("size"), "page");
  const built = spawnSync(process.execPath, [join(root, "web/build.mjs"), out], { encoding: "utf8" });
  assert.equal(built.status, 0, built.stderr);
  const index = readFileSync(join(out, "index.html"), "utf8");
  const first = new Set([...index.matchAll(/(?:href|src)="\/assets\/([^"]+)"/g)].map(([, name]) => name));
  const size = (path) => gzipSync(readFileSync(path), { level: 9 }).length;
  const sizes = readdirSync(join(out, "assets")).map((name) => ({ name, bytes: size(join(out, "assets", name)) }));
  const parts = [{ name: "index.html", bytes: size(join(out, "index.html")) }, ...sizes.filter(({ name }) => first.has(name))];
  const whole = parts.reduce((sum, { bytes }) => sum + bytes, 0);
  const lines = (list) => list.sort((a, b) => b.bytes - a.bytes)
    .map(({ name, bytes }) => `  ${String(bytes).padStart(7)} ${name}`).join("\n");
  run.diagnostic(`first load: ${whole} bytes\n${lines(parts)}\nlater:\n${lines(sizes.filter(({ name }) => !first.has(name)))}`);
  assert.ok(parts.length > 3, "the index names its parts");
  assert.ok(whole <= FIRST_LOAD_MAX, `${whole} bytes are more than ${FIRST_LOAD_MAX}`);
});
