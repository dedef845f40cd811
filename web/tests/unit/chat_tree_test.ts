import assert from "node:assert/strict";
import test from "node:test";
import { below, childrenOf, groupOf, leafBelow, pathTo, removeBranch, removeOne, siblingsOf, treeOf,
  type Tree } from "../../src/chat/engine/tree";
import type { Message } from "../../src/chat/engine/types";

let age = 0;
const message = (id: string, parent: string | null, more: Partial<Message> = {}): Message => ({ id, conversation: "c", parent,
  role: id.startsWith("u") ? "user" : "assistant", text: id, created_ms: ++age, ...more });
// u1 - a1 - u2 - a2, with a1b beside a1 and u2b - a3 below a1.
const tree: Tree = treeOf([message("u1", null), message("a1", "u1"), message("u2", "a1"), message("a2", "u2"), message("a1b", "u1"),
  message("u2b", "a1"), message("a3", "u2b")]);
const ids = (messages: readonly Message[]): string[] => messages.map((one) => one.id);
const after = (removal: ReturnType<typeof removeOne>): Tree => {
  const map = new Map(tree);
  for (const one of removal.moved) map.set(one.id, one);
  for (const one of removal.removed) map.delete(one.id);
  return map;
};

test("the path goes from the first message to the leaf", () => {
  assert.deepEqual(ids(pathTo(tree, "a2")), ["u1", "a1", "u2", "a2"]);
  assert.deepEqual(ids(pathTo(tree, "a3")), ["u1", "a1", "u2b", "a3"]);
  assert.deepEqual(pathTo(tree, null), []);
  assert.deepEqual(pathTo(tree, "unknown"), []);
});

test("siblings are in the order of their age, and the branch below a message ends at its newest leaf", () => {
  assert.deepEqual(ids(siblingsOf(tree, tree.get("a1")!)), ["a1", "a1b"]);
  assert.deepEqual(ids(childrenOf(tree, "a1")), ["u2", "u2b"]);
  assert.equal(leafBelow(tree, "u1"), "a1b");
  assert.equal(leafBelow(tree, "a1"), "a3");
  assert.deepEqual(ids(below(tree, "a1")).sort(), ["a2", "a3", "u2", "u2b"]);
});

test("deleting one message deletes only that one", () => {
  const removal = removeOne(tree, "a1", "a2");
  assert.deepEqual(ids(removal.removed), ["a1"]);
  assert.equal(removal.leaf, "a2");
  assert.deepEqual(ids(pathTo(after(removal), removal.leaf)), ["u1", "u2", "a2"]);
  assert.equal(after(removal).size, tree.size - 1);
});

test("deleting the leaf shows a sibling's branch, or ends at the parent", () => {
  assert.equal(removeOne(tree, "a2", "a2").leaf, "u2");
  assert.equal(removeOne(tree, "a1b", "a1b").leaf, "a3");
  assert.equal(removeBranch(tree, "u1", "a2").leaf, null);
});

test("deleting a branch deletes what stands below it, and nothing else", () => {
  const removal = removeBranch(tree, "u2", "a2");
  assert.deepEqual(ids(removal.removed).sort(), ["a2", "u2"]);
  assert.equal(removal.leaf, "a3");
  assert.equal(removeBranch(tree, "u2", "a3").leaf, "a3");
});

test("a damaged history ends: a missing parent begins the branch, and a circle is left", () => {
  assert.deepEqual(ids(pathTo(treeOf([message("a9", "gone")]), "a9")), ["a9"]);
  assert.deepEqual(ids(siblingsOf(treeOf([message("a9", "gone")]), message("a9", "gone"))), ["a9"]);
  assert.equal(pathTo(treeOf([message("x", "y"), message("y", "x")]), "x").length, 2);
});

test("answers side by side are those of one group", () => {
  const wide = treeOf([message("u1", null), message("b1", "u1", { group: "g" }), message("b2", "u1", { group: "g" }), message("b3", "u1")]);
  assert.deepEqual(ids(groupOf(wide, wide.get("b2")!)), ["b1", "b2"]);
  assert.deepEqual(ids(groupOf(wide, wide.get("b3")!)), ["b3"]);
});
