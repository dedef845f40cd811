import assert from "node:assert/strict";
import test from "node:test";
import { bytesPerSecond, isEncrypted, kindOf, linesOf, slowest } from "../../src/cluster/lines";
import type { Status } from "../../src/cluster/types";
import recorded from "./data/two_nodes.json";
import other from "./data/two_nodes_other.json";
import { metersOf, statusOf } from "./many_nodes";

test("the node of rank 0 has the figures of the link", () => {
  const { between, inside } = linesOf(recorded as unknown as Status, undefined);
  assert.equal(between.length, 1);
  assert.equal(inside.size, 0);
  const [link] = between[0]!.links;
  assert.equal(kindOf(link!.link), "TCP");
  assert.equal(link!.p50Us! > 0, true);
  assert.equal(link!.isBusy, false);
});

test("another node knows that the ranks exchange, and no figures", () => {
  const { between } = linesOf(other as unknown as Status, undefined);
  assert.equal(between.length, 1);
  assert.equal(between[0]!.links[0]!.link, undefined);
  assert.equal(kindOf(between[0]!.links[0]!.link), "not known here");
});

test("a pair of machines has one line with the links of all models", () => {
  const { between } = linesOf(statusOf(16), metersOf(16, 0));
  assert.equal(between.length, 120);
  const first = between.find(({ key }) => key === `${"00".repeat(32)}~${"01".repeat(32)}`)!;
  // The pipeline has no measured links: its neighbours are drawn.
  assert.deepEqual(first.links.map(({ model, link }) => [model, link !== undefined]), [["big", true], ["small", false]]);
  assert.equal(first.links[0]!.p50Us, 17);
  assert.equal(bytesPerSecond(first.links), 3_000_000);
  assert.equal(first.links[0]!.isBusy, true);
  assert.equal(isEncrypted(first.links), false);
  assert.equal(slowest(first.links).model, "big");
  // Tokens are made and no bytes are known: the line is busy, its rate is not told.
  const second = between.find(({ a, b }) => a === "00".repeat(32) && b === "05".repeat(32))!;
  assert.equal(second.links[0]!.isBusy, true);
  assert.equal(bytesPerSecond(second.links), undefined);
});

test("a pipeline of tensor stages: ranks of a stage, and each with the next stage", () => {
  const node = (id: string) => ({ id, name: id, state: "alive", is_self: id === "n0" });
  const status = { nodes: ["n0", "n1", "n2", "n3"].map(node), models: [{ name: "m", stages: 2, links: [],
    ranks: [0, 1, 2, 3].map((rank) => ({ rank, node: `n${rank}` })) }] } as unknown as Status;
  assert.deepEqual(linesOf(status, undefined).between.map(({ a, b }) => a + b).sort(), ["n0n1", "n0n2", "n1n3", "n2n3"]);
});

test("ranks that share a machine have their link inside", () => {
  const status = { nodes: [{ id: "n0", is_self: true }],
    models: [{ name: "m", ranks: [{ rank: 0 }, { rank: 1 }],
    links: [{ a: 0, b: 1, path: "shm", rails: 1, tcp_rails: 0, encrypted: false, reason: "", p50_us: 3, p99_us: 5,
        gbit_s: 100 }] }] } as unknown as Status;
  const { between, inside } = linesOf(status, undefined);
  assert.equal(between.length, 0);
  assert.equal(kindOf(inside.get("n0")![0]!.link), "shared memory");
});

test("without models, links or nodes there are no lines", () => {
  assert.deepEqual(linesOf(undefined, undefined).between, []);
  assert.deepEqual(linesOf({ nodes: [], models: [{ name: "m", links: [{ a: 0, b: 1 }] }] } as unknown as Status, undefined).between, []);
});
