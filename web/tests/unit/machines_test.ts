import assert from "node:assert/strict";
import test from "node:test";
import { hueOf } from "../../src/cluster/hues";
import { machinesOf, tileSentence, tileText } from "../../src/cluster/machines";
import { lossesAfter, modelWord } from "../../src/cluster/losses";
import type { Happening, ModelStatus, Status } from "../../src/cluster/types";
import recorded from "./data/two_nodes.json";
import { idOf, metersOf, statusOf } from "./many_nodes";

const NONE = new Map<string, number>();
const two = recorded as unknown as Status;

test("a recorded status of two nodes: each has its rank, its bytes and its roles", () => {
  const machines = machinesOf(two, undefined, NONE, 0);
  assert.equal(machines.length, 2);
  for (const machine of machines) {
    assert.equal(machine.tiles.length, 1);
    assert.equal(machine.parts[0]!.model, "stories260K");
    assert.equal(machine.parts[0]!.bytes, machine.node.promised_bytes);
    assert.equal(machine.other, 0);
    assert.equal(machine.meters, undefined);
  }
  assert.deepEqual(machines.map(({ tiles }) => tiles[0]!.layers).sort(), [[0, 2], [3, 4]]);
  assert.equal(machines.filter(({ node }) => node.is_coordinator).length, 1);
  assert.equal(machines.flatMap(({ tiles }) => tiles.map((tile) => tile.part)).every((part) => part === 1), true);
});

test("ranks on machines: shares of a layer, two models in the bar, meters of the machine", () => {
  const machines = machinesOf(statusOf(16), metersOf(16, 5), NONE, 5);
  assert.equal(machines.length, 16);
  assert.deepEqual(machines[0]!.parts.map(({ model }) => model), ["big", "small"]);
  assert.equal(machines[5]!.parts.length, 1);
  assert.equal(machines[0]!.other, (50 - 38) * 2 ** 30);
  assert.equal(machines[1]!.meters?.power_w, 86);
  assert.equal(machines[2]!.meters, undefined);
  // Shares 1 and 2 in turn, 24 together.
  assert.equal(machines[0]!.tiles[0]!.part, 1 / 24);
  assert.equal(tileText(machines[1]!.tiles[0]!, 40), "rank 1, layers 0–79, 8 % of each");
  assert.equal(tileText(machines[1]!.tiles[0]!, 12), "1: 0–79 8 %");
  assert.equal(tileSentence(machines[1]!.tiles[1]!), "small, rank 1: layers 7 to 13");
});

test("a model that runs on this node alone has no placement: its ranks are here", () => {
  const alone = { version: "", control: false, pulls: [], happened: [], nodes: [{ ...two.nodes[0]!, is_self: true }],
    models: [{ name: "m", state: "ready", restarts: 0, last_error: "", ranks: [{ rank: 0, weight_bytes: 5 }, { rank: 1, state_bytes: 2 },
      { rank: 2 }] }] } as Status;
  const [machine] = machinesOf(alone, undefined, NONE, 0);
  assert.equal(machine!.tiles.length, 3);
  assert.deepEqual(machine!.parts.map(({ bytes }) => bytes), [7]);
  assert.equal(tileText(machine!.tiles[2]!, 40), "rank 2");
});

test("a rank says where it computes, if that is known", () => {
  const gpu = "vulkan: AMD Radeon RX 7900 XTX (radv)";
  const alone = { version: "", control: false, pulls: [], happened: [], nodes: [{ ...two.nodes[0]!, is_self: true }],
    models: [{ name: "m", state: "ready", restarts: 0, last_error: "", ranks: [{ rank: 0, layers: [0, 3], device: gpu },
      { rank: 1, device: "" }] }] } as Status;
  const tiles = machinesOf(alone, undefined, NONE, 0)[0]!.tiles;
  assert.deepEqual(tiles.map(tileSentence), [`m, rank 0: layers 0 to 3, on ${gpu}`, "m, rank 1"]);
});

test("what is missing is left out, nothing fails", () => {
  assert.deepEqual(machinesOf(undefined, undefined, NONE, 0), []);
  assert.deepEqual(machinesOf({ nodes: [{ id: "ab", state: "odd" }], models: [{ name: "m" }] } as unknown as Status, undefined, NONE, 0)
    .map(({ name, word, tiles }) => [name, word, tiles.length]), [["ab", "odd", 0]]);
});

test("a loss counts from when the node said so, else from when the page saw it, and ends when the node is back", () => {
  const status = statusOf(4);
  assert.deepEqual([...lossesAfter(NONE, status, status.happened, 1_070_000)], [[idOf(2), 1_060_000]]);
  const unsaid = lossesAfter(NONE, status, [], 1_070_000);
  assert.deepEqual([...unsaid], [[idOf(2), 1_070_000]]);
  assert.deepEqual([...lossesAfter(unsaid, status, [], 1_090_000)], [[idOf(2), 1_070_000]]);
  assert.equal(machinesOf(status, undefined, unsaid, 1_073_000)[2]!.lostSeconds, 3);
  status.nodes[2]!.state = "alive";
  assert.equal(lossesAfter(unsaid, status, status.happened, 1_091_000).size, 0);
});

test("a model is paused, then healed for half a minute, then ready", () => {
  const happened = statusOf(4).happened;
  const model = statusOf(4).models[0]!;
  assert.equal(modelWord(model, happened, 0).word, "paused");
  assert.match(modelWord(model, happened, 0).sentence, /places it again/);
  const healed: Happening[] = [...happened, { at_ms: 2_000_000, kind: "healed", sentence: "big serves again after 1.3 s" }];
  const ready = { ...model, state: "ready" };
  assert.deepEqual(modelWord(ready, healed, 2_010_000), { word: "healed", tone: "good", sentence: "big serves again after 1.3 s" });
  assert.equal(modelWord(ready, healed, 2_031_000).word, "ready");
  // A model whose name begins alike is another one.
  assert.equal(modelWord({ ...ready, name: "bi" } as ModelStatus, healed, 2_010_000).word, "ready");
  assert.equal(modelWord({ ...model, state: "failed", last_error: "x", sentence: "" }, happened, 0).sentence, "x");
});

test("a model has its hue wherever it is asked for", () => {
  assert.equal(hueOf("a", ["b", "a"]), hueOf("a", ["a", "b", "a"]));
  assert.notEqual(hueOf("a", ["b", "a"]), hueOf("b", ["b", "a"]));
  assert.equal(hueOf("x", []), "var(--line-strong)");
});
