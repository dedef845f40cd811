// Waiting answers share one look at the node's queue.
import assert from "node:assert/strict";
import test from "node:test";
import type { RequestInfo } from "../../src/activity/requests";
import { placeOf, QueueLook } from "../../src/chat/engine/queue_look";

const waiting = (id: string, more: Partial<RequestInfo> = {}): RequestInfo => ({ id, model: "m", phase: "waiting", age_s: 2, ...more });

test("one look serves all who ask while it is fresh, and none begins while one is under way", async () => {
  let now = 0;
  let asked = 0;
  let answer: (list: RequestInfo[]) => void = () => {};
  const look = new QueueLook(() => {
    asked += 1;
    return new Promise((done) => { answer = done; });
  }, () => now);
  const both = [look.requests(), look.requests()];
  now = 5_000;
  both.push(look.requests());
  assert.equal(asked, 1);
  answer([waiting("a")]);
  assert.deepEqual((await Promise.all(both)).map((list) => list.length), [1, 1, 1]);
  const next = look.requests();
  assert.equal(asked, 2);
  answer([]);
  assert.deepEqual(await next, []);
  now = 5_300;
  await look.requests();
  assert.equal(asked, 2, "a fresh look is not made again");
});

test("a look that failed is followed by another", async () => {
  let asked = 0;
  let now = 0;
  const look = new QueueLook(() => (++asked === 1 ? Promise.reject(new Error("gone")) : Promise.resolve([waiting("a")])), () => now);
  await assert.rejects(look.requests(), /gone/);
  now = 500;
  assert.equal((await look.requests()).length, 1);
});

test("the place is that of the request with the model and the nearest age", () => {
  const list = [waiting("a", { place: 1, age_s: 9 }), waiting("b", { place: 2, age_s: 3 }), waiting("c", { place: 3, own: false }),
    waiting("d", { place: 4, model: "other" }), waiting("e", { place: 5, phase: "answer" })];
  assert.equal(placeOf(list, "m", 2), 2);
  assert.equal(placeOf(list, "m", 8), 1);
  assert.equal(placeOf(list, "none", 2), undefined);
});
