import assert from "node:assert/strict";
import test from "node:test";
import { byUrgency } from "../../src/cluster/findings";
import { appended, filtered, hasRestarted, LINES_KEPT, type LogLine } from "../../src/cluster/log_lines";
import { merged } from "../../src/cluster/stored";
import type { ModelStatus, Pull, Status } from "../../src/cluster/types";
import { EMPTY, fieldsOf, isPath, loadBody, previewOf, whyNoModel } from "../../src/models/load_form";
import { progressPart, stillAfter } from "../../src/models/progress";
import { isActive, matching, rowsOf, type DiskReport } from "../../src/models/rows";
import recorded from "./data/two_nodes.json";

const disk: DiskReport = { nodes: [
  { node: "aa", name: "anna", free_bytes: 9, models: [
    { name: "org/whole", bytes: 100, whole_bytes: 100, complete: true, copies: "whole", path: "/m/whole" },
    { name: "org/part", bytes: 30, whole_bytes: 80, complete: false, copies: "share" }] },
  { node: "bb", name: "berta", models: [{ name: "org/whole", bytes: 60, whole_bytes: 100, complete: false, copies: "share" }] },
  { node: "cc", sentence: "carla did not answer" }] };
const loaded = (name: string, path?: string): ModelStatus =>
  ({ name, state: "ready", restarts: 0, last_error: "", ...(path ? { wanted: { path } } : {}) });

test("a row joins what is loaded, downloaded and on disks", () => {
  const pulls: Pull[] = [{ model: "org/part", phase: "downloading", read_bytes: 30, whole_bytes: 80 },
    { model: "org/new", phase: "failed" }];
  const rows = rowsOf([loaded("whole", "org/whole"), loaded("stories", "/a/stories")], pulls, disk);
  assert.deepEqual(rows.map(({ name }) => name), ["org/whole", "stories", "org/new", "org/part"]);
  assert.deepEqual(rows[0]!.copies.map(({ nodeName }) => nodeName), ["anna", "berta"]);
  assert.equal(rows[0]!.loaded!.name, "whole");
  assert.equal(rows[0]!.isComplete, true);
  assert.equal(rows[3]!.isComplete, false);
  assert.equal(rows[3]!.wholeBytes, 80);
  assert.equal(rows[3]!.pull!.phase, "downloading");
  assert.equal(rowsOf([loaded("x", "/m/whole")], [], disk)[0]!.name, "org/whole");
});

test("rows of a recorded status without a report of the disks", () => {
  const rows = rowsOf((recorded as unknown as Status).models, [], undefined);
  assert.equal(rows.length, 1);
  assert.equal(rows[0]!.wholeBytes, 676352 + 494848);
  assert.deepEqual(rowsOf([], [], undefined), []);
  assert.equal(matching(rows, "STORIES 260").length, 1);
  assert.equal(matching(rows, "stories x").length, 0);
});

test("progress is a part of measured bytes, and unknown without a whole", () => {
  assert.equal(progressPart(50, 200), 0.25);
  assert.equal(progressPart(300, 200), 1);
  assert.equal(progressPart(undefined, 200), 0);
  assert.equal(progressPart(5, undefined), undefined);
  assert.equal(progressPart(5, 0), undefined);
});

test("a download stands still once the node's rate is 0, since its bytes last changed", () => {
  const status = (read: number, rate: number): Status => ({ pulls: [{ model: "m", phase: "downloading", read_bytes: read, bytes_s: rate }],
    models: [{ ...loaded("n"), loading: { read_bytes: 7, whole_bytes: 9, bytes_s: 0 } }] }) as unknown as Status;
  let still = stillAfter(new Map(), status(10, 5), 1_000);
  assert.deepEqual(still.get("pull m"), { bytes: 10, sinceMs: 1_000, isStill: false });
  still = stillAfter(still, status(20, 5), 2_000);
  still = stillAfter(still, status(20, 3), 4_000);
  assert.deepEqual(still.get("pull m"), { bytes: 20, sinceMs: 2_000, isStill: false });
  still = stillAfter(still, status(20, 0), 8_000);
  assert.deepEqual(still.get("pull m"), { bytes: 20, sinceMs: 2_000, isStill: true });
  assert.deepEqual(still.get("load n"), { bytes: 7, sinceMs: 1_000, isStill: true });
  still = stillAfter(still, status(21, 0), 9_000);
  assert.equal(still.get("pull m")!.sinceMs, 9_000);
  assert.equal(stillAfter(still, { pulls: [{ model: "m", phase: "failed" }], models: [] } as unknown as Status, 9_000).size, 0);
});

test("a load's body has what was set and nothing else", () => {
  assert.deepEqual(loadBody({ ...EMPTY, model: " org/m " }, []), { model: "org/m" });
  assert.deepEqual(loadBody({ ...EMPTY, model: "m", draftModel: " org/small ", context: 4096, streams: 2, ranks: 3, parallelism: "tensor", nodes: ["aa"], replicas: 2,
    aliases: "one, two  three,", idleUnloadS: 60, kv: "q8", ngramsOnDisk: true }, []),
  { model: "m", draft_model: "org/small", context: 4096, streams: 2, parallel: 3, parallelism: "tensor", nodes: ["aa"], replicas: 2, aliases: ["one", "two", "three"],
    idle_unload_s: 60, kv: "q8", ngrams_on_disk: true });
});

test("a name that can be no model is refused before it is sent", () => {
  for (const model of ["org/name", "org/name@main", "org/name/file.gguf", "/models/stories260K", "/m.gguf"]) assert.equal(whyNoModel(model), "");
  for (const model of ["nope", "~/models", "org/", "m.gguf"]) assert.match(whyNoModel(model), /org\/name/, model);
  assert.deepEqual(["/m.gguf", "org/name"].map(isPath), [true, false]);
});

test("a model that is wanted already keeps its path, and the form shows what it was loaded with", () => {
  const { models, nodes } = recorded as unknown as Status;
  const model = { ...models[0]!, wanted: { ...models[0]!.wanted, aliases: ["a", "b"], nodes: [nodes[0]!.id], context: 512,
    idle_unload_s: 9 } };
  const fields = fieldsOf(model);
  assert.deepEqual(fields, { model: "stories260K", draftModel: "", context: 512, streams: 0, ranks: 2, parallelism: "auto", nodes: [nodes[0]!.id.slice(0,
    8)],
    replicas: 1, aliases: "a, b", idleUnloadS: 9, kv: "", ngramsOnDisk: false, areOptionsOpen: true });
  assert.equal(loadBody(fields, [model]).path, "/models/stories260K");
  assert.equal(loadBody({ ...fields, model: "/models/stories260K" }, [model]).path, undefined);
  assert.deepEqual(fieldsOf({ name: "m" } as ModelStatus), { ...EMPTY, model: "m", areOptionsOpen: true });
});

test("the preview leaves out the machines that were not chosen, and says what it cannot plan", () => {
  const { nodes } = recorded as unknown as Status;
  assert.deepEqual(previewOf({ ...EMPTY, model: "m" }, nodes), { request: { model: "m" }, unplanned: [] });
  const { request, unplanned } = previewOf({ ...EMPTY, model: "m", nodes: [nodes[0]!.id.slice(0, 8)], ranks: 2, replicas: 2 }, nodes);
  assert.deepEqual(request.remove, [nodes[1]!.id]);
  assert.deepEqual(unplanned, ["ranks", "groups"]);
});

test("the preview plans with the draft model, unless nobody has loaded it from these files", () => {
  const model = { name: "m", wanted: { path: "org/m", draft_model: "/models/small" } } as unknown as ModelStatus;
  const fields = fieldsOf(model);
  assert.equal(fields.draftModel, "/models/small");
  assert.equal(loadBody(fields, [model]).draft_model, "/models/small");
  assert.deepEqual(previewOf(fields, [], model), { request: { model: "m" }, unplanned: [] });
  assert.deepEqual(previewOf({ ...fields, draftModel: "" }, [], model), { request: { model: "m", draft_model: "" }, unplanned: [] });
  assert.equal(previewOf({ ...fields, draftModel: "org/other" }, [], model).request.draft_model, "org/other");
  assert.equal(previewOf({ ...fields, ngramsOnDisk: true }, [], model).request.ngrams_on_disk, true);
  assert.deepEqual(previewOf({ ...fields, draftModel: "/models/other" }, [], model), { request: { model: "m" }, unplanned: ["the draft model"] });
});

test("states of a download", () => {
  assert.equal(isActive(undefined), false);
  assert.equal(isActive({ model: "m", phase: "checking" }), true);
  assert.equal(isActive({ model: "m", phase: "failed" }), false);
});

test("a stored form is taken as far as it has the form of today's", () => {
  assert.deepEqual(merged({ a: 1, b: "x", c: [] as string[] }, '{"a":2,"b":3,"c":{},"d":4}'), { a: 2, b: "x", c: [] });
  assert.deepEqual(merged({ a: 1 }, "no json"), { a: 1 });
  assert.deepEqual(merged({ a: 1 }, "null"), { a: 1 });
  assert.deepEqual(merged({ a: {} }, '{"a":null}'), { a: {} });
});

test("findings: problems first, in the doctor's order", () => {
  const of = (check: string, severity: "ok" | "note" | "problem") => ({ check, severity, sentence: "", mend: "" });
  assert.deepEqual(byUrgency([of("a", "ok"), of("b", "note"), of("c", "problem"), of("d", "note")]).map(({ check }) => check), ["c", "b",
    "d", "a"]);
});

test("lines of the log: kept to a limit, filtered by words and level", () => {
  const line = (number: number, level: string, text: string): LogLine => ({ number, at_ms: 0, level, text });
  const lines = [line(1, "info", "Node anna joined"), line(2, "warn", "late"), line(3, "error", "node lost")];
  assert.deepEqual(filtered(lines, "NODE", "info").map(({ number }) => number), [1, 3]);
  assert.deepEqual(filtered(lines, "", "warn").map(({ number }) => number), [2, 3]);
  assert.deepEqual(filtered(lines, "lost node", "error").map(({ number }) => number), [3]);
  const many = Array.from({ length: LINES_KEPT }, (_, at) => line(at, "info", ""));
  assert.equal(appended(many, { lines, next: 4 }).length, LINES_KEPT);
  assert.equal(appended(many, { lines, next: 4 }).at(-1), lines[2]);
  assert.equal(hasRestarted(500, { lines: [], next: 3 }), true);
  assert.equal(hasRestarted(500, { lines: [], next: 500 }), false);
});
