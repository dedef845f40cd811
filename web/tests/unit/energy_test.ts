import assert from "node:assert/strict";
import test from "node:test";
import { joulesOf, nodesOf } from "../../src/cluster/energy";
import type { Meters, ModelStatus } from "../../src/cluster/types";

const meters = (now_ms: number, watts: Record<string, number | undefined>): Meters => ({ now_ms, models: [], links: [],
  nodes: Object.entries(watts).map(([node, power_w]) => ({ node, ...(power_w === undefined ? {} : { power_w }) })) });
const second = (count: number, watts: (at: number) => Record<string, number | undefined>): Meters[] =>
  Array.from({ length: count }, (_, at) => meters((at + 1) * 1_000, watts(at + 1)));

test("joules are watts by seconds, over the machines that took part", () => {
  const history = second(10, () => ({ a: 10, b: 30, other: 500 }));
  assert.equal(joulesOf(history, ["a"], 2_000, 5_000), 30);
  assert.equal(joulesOf(history, ["a", "b"], 2_000, 5_000), 120);
});

test("a reading stands for the time before it, and only for the part within the answer", () => {
  const history = second(4, (at) => ({ a: at * 10 })); // 10 W until 1 s, 20 W until 2 s, ...
  assert.equal(joulesOf(history, ["a"], 500, 2_500), 0.5 * 10 + 20 + 0.5 * 30);
  assert.equal(joulesOf(history, ["a"], 1_000, 3_000), 20 + 30);
});

test("the last reading stands for an end that has none yet", () => {
  const history = second(3, (at) => ({ a: at * 10 }));
  assert.equal(joulesOf(history, ["a"], 2_000, 3_800), 30 + 0.8 * 30);
});

test("nothing is said where power was not measured", () => {
  const history = second(6, (at) => ({ a: 10, b: at === 4 ? undefined : 5 }));
  assert.equal(joulesOf(history, [], 1_000, 5_000), undefined, "no machine is known");
  assert.equal(joulesOf(history, ["a", "c"], 1_000, 5_000), undefined, "a machine has no readings");
  assert.equal(joulesOf(history, ["a", "b"], 1_000, 5_000), undefined, "one of the readings lacks it");
  assert.equal(joulesOf(history, ["a", "b"], 1_000, 3_000), 30, "and it is not of this time");
  assert.equal(joulesOf(history, ["a"], 1_000, 1_900), undefined, "it took less than a reading");
  assert.equal(joulesOf(history, ["a"], 1_000, 11_100), undefined, "the readings end before it");
  assert.equal(joulesOf([], ["a"], 0, 2_000), undefined);
});

test("nothing is said over a gap between readings, or from before the first one", () => {
  const history = second(10, () => ({ a: 10 }));
  assert.equal(joulesOf(history.filter(({ now_ms }) => now_ms < 3_000 || now_ms > 7_000), ["a"], 1_000, 9_000), undefined);
  assert.equal(joulesOf(history.filter(({ now_ms }) => now_ms >= 7_000), ["a"], 1_000, 9_000), undefined);
});

test("the machines of an answer are those of its model's ranks, unless several groups may have it", () => {
  const model = (more: Partial<ModelStatus>): ModelStatus => ({ name: "m", state: "ready", restarts: 0, last_error: "", ...more });
  const ranks = [{ rank: 0, node: "a" }, { rank: 1, node: "b" }, { rank: 2, node: "a" }];
  assert.deepEqual(nodesOf(model({ ranks }), "a"), ["a", "b"]);
  assert.deepEqual(nodesOf(model({ ranks: [{ rank: 0 }] }), "self"), ["self"]);
  assert.deepEqual(nodesOf(model({ ranks: [{ rank: 0 }] }), undefined), []);
  const group = { phase: "ready", stages: 1, running: 0 };
  assert.deepEqual(nodesOf(model({ ranks, groups: [{ group: 1, ...group }, { group: 2, ...group }] }), "a"), []);
  assert.deepEqual(nodesOf(undefined, "a"), []);
});
