import assert from "node:assert/strict";
import test from "node:test";
import { introduction, parameterWords, slowedSentence } from "../../src/firstrun/facts";
import { offered, type Fit } from "../../src/firstrun/fit";
import { firstDifference, wrongTokens, type Told } from "../../src/firstrun/telling";
import type { ModelStatus } from "../../src/cluster/types";
import { Speed } from "../../src/lib/speed";

const told = (...tokens: string[]): Told => ({ tokens, text: tokens.join("") });

test("two tellings are the same only token by token", () => {
  assert.equal(firstDifference(told("a", "b"), told("a", "b")), undefined);
  assert.deepEqual(firstDifference(told("a", "bc"), told("a", "bd")), { token: 1, character: 2 });
  assert.deepEqual(firstDifference(told("a", "b"), told("a", "b", "c")), { token: 2, character: 2 });
  assert.deepEqual(firstDifference(told("ab"), told("a", "b")), { token: 0, character: 2 });
  assert.equal(wrongTokens(told("a", "b", "c"), told("a", "x")), 2);
  assert.equal(wrongTokens(told("a"), told("a")), 0);
});

test("the speed falls to 0 when nothing comes", () => {
  const speed = new Speed();
  for (let at = 0; at < 40; ++at) speed.add(1000 + 25 * at);
  assert.ok(Math.abs(speed.at(2000) - 40) < 3);
  assert.ok(speed.at(3500) < 15);
  assert.equal(speed.at(5000), 0);
});

test("the sentence says what the node says", () => {
  const model = { name: "stories260K", state: "ready", restarts: 0, last_error: "",
    ranks: [{ rank: 0, node: "n" }, { rank: 1, node: "n" }],
    links: [{ a: 0, b: 1, path: "shm", p50_us: 2010 }] } as unknown as ModelStatus;
  assert.equal(introduction(model, 260_032),
    "Two processes on this machine share one model. It has 260 thousand parameters and knows children's stories.");
  assert.equal(introduction({ ...model, name: "q", ranks: [{ rank: 0, node: "n" }] }, undefined),
    "One process on this machine holds the whole model.");
  assert.equal(parameterWords(1_540_000_000), "1.5 billion");
  assert.match(slowedSentence(model), /slowed on purpose/);
  assert.equal(slowedSentence({ ...model, links: [{ ...model.links![0], p50_us: 3 }] }), "");
});

test("slow models are offered only where there are not enough others", () => {
  const fits = (...speeds: number[]): Fit[] => speeds.map((tokensPerSecond, at) => ({ id: `m${at}`, title: "", bytes: 1, tokensPerSecond,
    machines: 1 }));
  const speeds = (list: Fit[]): number[] => offered(list).map((fit) => fit.tokensPerSecond);
  assert.deepEqual(speeds(fits(0.9, 1.5, 3, 5, 9)), [3, 5, 9]);
  assert.deepEqual(speeds(fits(0.9, 1.5, 2.9, 8)), [1.5, 2.9, 8]);
  assert.deepEqual(speeds(fits(0.5)), [0.5]);
  assert.deepEqual(speeds([]), []);
});
