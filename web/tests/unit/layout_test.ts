import assert from "node:assert/strict";
import test from "node:test";
import { curve, fitted, layout, MACHINES_DRAWN, type Box } from "../../src/cluster/layout";

const overlap = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width - 0.01 && b.x < a.x + a.width - 0.01 && a.y < b.y + b.height - 0.01 && b.y < a.y + a.height - 0.01;

for (const width of [260, 320, 358, 559, 560, 640, 768, 1040, 1400]) {
  test(`boxes lie inside and apart, ${width} wide`, () => {
    for (let count = 1; count <= 20; ++count) {
      const plan = layout(count, width);
      assert.equal(plan.boxes.length, Math.min(count, MACHINES_DRAWN));
      plan.boxes.forEach((box, at) => {
        assert.ok(box.x >= 0 && box.x + box.width <= width + 0.01, `${count}: box ${at} at ${box.x} with ${box.width}`);
        assert.ok(box.y >= 0 && box.y + box.height <= plan.height);
        assert.ok(box.width >= 52, `${count}: box ${at} is ${box.width} wide`);
        plan.boxes.slice(at + 1).forEach((other, more) => assert.ok(!overlap(box, other), `${count}: ${at} on ${at + 1 + more}`));
      });
    }
  });
}

test("every pair has a line and a label inside the picture", () => {
  for (const [count, width] of [[2, 1040], [3, 358], [7, 1040], [16, 1040], [16, 358]] as const) {
    const { boxes, isColumn, height } = layout(count, width);
    boxes.forEach((a, at) => boxes.slice(at + 1).forEach((b, nth) => {
      const line = curve(a, b, isColumn, nth);
      assert.ok(!line.path.includes("NaN"));
      assert.ok(line.x >= 0 && line.x <= width, `${count} at ${width}: label at ${line.x}`);
      assert.ok(line.y >= 0 && line.y <= height);
      assert.deepEqual(curve(b, a, isColumn, nth), line);
    }));
  }
});

test("a phone has a column, a desk two rows that face each other", () => {
  assert.equal(layout(5, 358).isColumn, true);
  const { boxes } = layout(6, 1040);
  assert.equal(new Set(boxes.map(({ y }) => y)).size, 2);
  // The circle: the fourth box stands under the third.
  assert.equal(Math.round(boxes[3]!.x), Math.round(boxes[2]!.x));
});

test("text is cut with a sign that it was cut", () => {
  assert.equal(fitted("studio", 100), "studio");
  assert.equal(fitted("a-very-long-name-of-a-machine", 70), "a-very-lo…");
  assert.equal(fitted("x", 0), "x");
});
