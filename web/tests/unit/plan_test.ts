import assert from "node:assert/strict";
import test from "node:test";
import { fateOf, requestOf, withMachine, type Desk } from "../../src/cluster/desk";
import { Lane } from "../../src/cluster/lane";
import { measuredOf } from "../../src/cluster/measured";
import { asPlaced, fitText, lackOf, sharesOf, timeParts, type Plan } from "../../src/cluster/plan";
import type { Meters, Status } from "../../src/cluster/types";
import fits from "./data/plan.json";
import here from "./data/plan_here.json";
import refused from "./data/plan_refused.json";
import recorded from "./data/two_nodes.json";

const plan = fits as unknown as Plan;
const lack = refused as unknown as Plan;
const desk: Desk = { model: "m", context: 0, streams: 0, link: "10gbe", add: [], remove: [] };

test("a recorded plan: what each machine holds, and where a token's time goes", () => {
  const pipeline = plan.placements.find((other) => other.kind === "pipeline" && other.machines === 2)!;
  const shares = sharesOf(pipeline);
  assert.equal(shares.length, 2);
  assert.match(shares[0]!.ranks[0]!.text, /^layers 0 to \d$/);
  assert.equal(shares.reduce((sum, share) => sum + share.bytes, 0), pipeline.groups[0]!.ranks.reduce((sum, rank) => sum +
    rank.memory_bytes, 0));
  const tensor = plan.placements.find((other) => other.kind === "tensor")!;
  assert.match(sharesOf(tensor)[0]!.ranks[0]!.text, /^\d+ % of layers 0 to 4$/);
  const parts = timeParts(tensor.token_us);
  assert.ok(Math.abs(parts.reduce((sum, part) => sum + part.part, 0) - 1) < 1e-9);
  assert.ok(parts.every((part, at) => at === 0 || part.us <= parts[at - 1]!.us));
  assert.deepEqual(timeParts({ weights: 0, state: 0, kernels: 0, compute: 0, exchange: 0, hops: 0 }), []);
});

test("fit in words, and why nothing fits", () => {
  assert.match(fitText(plan, 3), /^fits on \d of 3$/);
  assert.equal(fitText(plan, 1), "fits");
  assert.equal(fitText(lack, 2), "does not fit on 2 machines together");
  assert.equal(lackOf(plan), "");
  assert.match(lackOf(lack), /would need .* and has/);
  assert.match(lackOf({ ...lack, refused: [] }), /does not fit/);
});

test("the placement that a model has is found in the plan", () => {
  const model = (recorded as unknown as Status).models[0]!;
  const placed = asPlaced(here as unknown as Plan, model)!;
  assert.equal(placed.kind, "pipeline");
  assert.equal(placed.machines, 2);
  assert.equal(asPlaced(here as unknown as Plan, { ...model, placement: [] }), undefined);
  assert.equal(asPlaced(plan, undefined), undefined);
});

test("the desk: machines get names of their own, a loss takes one away", () => {
  const one = { ...desk, add: withMachine(desk, "h200") };
  const two = { ...one, add: withMachine(one, "h200"), remove: ["aa"], context: 4096, streams: 2 };
  assert.deepEqual(two.add.map(({ name }) => name), ["h200-1", "h200-2"]);
  assert.deepEqual(requestOf(two, "m"), { model: "m", context: 4096, streams: 2, remove: ["aa"],
    add: [{ name: "h200-1", profile: "h200", link: "10gbe" }, { name: "h200-2", profile: "h200", link: "10gbe" }] });
  assert.deepEqual(requestOf(two, "other", "h200-1", false).add!.map(({ name }) => name), ["h200-2"]);
  assert.deepEqual(requestOf(two, "other", "bb", false), { model: "other", add: two.add, remove: ["aa", "bb"] });
  assert.deepEqual(requestOf(desk, "m"), { model: "m" });
  const full = { ...desk, add: Array.from({ length: 64 }, (_, at) => ({ name: `x-${at}`, profile: "x", link: "y" })) };
  assert.equal(withMachine(full, "h200").length, 64);
});

test("fates: survives, would wait, no plan", () => {
  assert.equal(fateOf(plan, "").word, "survives");
  assert.equal(fateOf(lack, "").word, "would wait");
  assert.deepEqual(fateOf(undefined, "no machine is left"), { word: "no plan", isGood: false, sentence: "no machine is left" });
});

test("a lane runs two at a time, in order, and what is ended while it waits never starts", async () => {
  const lane = new Lane(2);
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const task = (number: number) => () => new Promise<number>((resolve) => {
    started.push(number);
    ends.push(() => resolve(number));
  });
  const control = new AbortController();
  const [first, , third] = [lane.run(task(1)), lane.run(task(2)), lane.run(task(3), control.signal)];
  const fourth = lane.run(task(4));
  assert.deepEqual(started, [1, 2]);
  control.abort();
  await assert.rejects(third, { name: "AbortError" });
  ends[0]!();
  assert.equal(await first, 1);
  await Promise.resolve();
  assert.deepEqual(started, [1, 2, 4]);
  ends.forEach((end) => end());
  assert.equal(await fourth, 4);
  // A failed task makes room as well.
  await assert.rejects(lane.run(() => Promise.reject(new Error("no"))), /no/);
  assert.equal(await lane.run(() => Promise.resolve(5)), 5);
});

test("what was measured last", () => {
  const at = (second: number, tokens: number, running: number): Meters =>
    ({ now_ms: second * 1000, nodes: [], links: [], models: [{ name: "m", tokens_s: tokens, running, waiting: 0 }] });
  assert.equal(measuredOf([], "m"), undefined);
  assert.equal(measuredOf([at(1, 0, 0)], "m"), undefined);
  assert.deepEqual(measuredOf([at(1, 90, 9), at(2, 500, 0), at(3, 10, 1), at(4, 20, 2), at(5, 0, 0), at(6, 0, 0)], "m"),
    { tokS: 15, answers: 2, agoS: 2 });
  assert.equal(measuredOf([at(3, 10, 1)], "other"), undefined);
});
