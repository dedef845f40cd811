import assert from "node:assert/strict";
import test from "node:test";
import { histogramsOf, quantile, since } from "../../src/activity/histograms";
import { phaseText, rateOf, tracesAfter, TRACES_KEPT, type RequestInfo, type Trace } from "../../src/activity/requests";
import { axisEnd, columnsOf, joules, paths, power, spanOf, tokens } from "../../src/activity/series";
import type { Meters } from "../../src/cluster/types";
import metrics from "./data/metrics.txt";
import { metersOf } from "./many_nodes";

const FIRST = "lockstep_time_to_first_token_seconds";
const at = (ms: number, tokens_s?: number, watts?: number): Meters => ({ now_ms: ms, links: [],
  nodes: watts === undefined ? [{ node: "a" }] : [{ node: "a", power_w: watts }], models: tokens_s === undefined ? [] :
    [{ name: "m", tokens_s, running: 0, waiting: 0 }] });

test("columns are means of equal spans; a gap stays a gap", () => {
  const history = [at(500, 10), at(1_000, 20), at(1_900, 40), at(3_500, 8), at(4_000, 6), at(9_999, 1)];
  assert.deepEqual(columnsOf(history, tokens, 4, 4_000, 4_000), [10, 30, undefined, 7]);
  assert.deepEqual(columnsOf([], tokens, 2, 10, 10), [undefined, undefined]);
});

test("power and joules are unknown where nobody measures them, not 0", () => {
  assert.equal(power(at(0, 5)), undefined);
  assert.equal(joules(at(0, 5)), undefined);
  assert.equal(joules(at(0, 0, 100)), undefined);
  assert.equal(joules(at(0, 20, 100)), 5);
  assert.equal(power(metersOf(4, 0)), 85 + 86 + 88);
});

test("the span grows with what was measured, to an hour", () => {
  assert.equal(spanOf([], 0), 60_000);
  assert.equal(spanOf([at(0)], 61_000), 300_000);
  assert.equal(spanOf([at(0)], 3_600_000), 3_600_000);
});

test("axes end at 1, 2 or 5 times a power of ten", () => {
  assert.deepEqual([0, 0.3, 1, 1.2, 4, 7, 23, 180, 999].map((value) => axisEnd([value, undefined], 0.01)), [0.01, 0.5, 1, 2, 5, 10, 50,
    200, 1000]);
  assert.equal(axisEnd([0.2], 1), 1);
});

test("a curve is cut where nothing was measured, and stays in its box", () => {
  const pieces = paths([0, 5, undefined, 20, undefined], 10, 100, 50);
  assert.equal(pieces.length, 2);
  assert.equal(pieces[0], "M0.0 50.0L20.0 50.0L40.0 25.0");
  assert.equal(pieces[1], "M60.0 0.0L80.0 0.0");
  assert.deepEqual(paths([undefined], 1, 10, 10), []);
});

test("histograms of a recorded /metrics", () => {
  const [first] = histogramsOf(metrics, FIRST);
  assert.equal(first!.model, "stories260K");
  assert.equal(first!.buckets.at(-1)!.until, Infinity);
  assert.equal(first!.buckets.at(-1)!.count, first!.count);
  const [half, most] = [quantile(first!, 0.5)!, quantile(first!, 0.99)!];
  assert.ok(half.value > 0 && half.value <= most.value);
  assert.deepEqual(histogramsOf(metrics, "lockstep_time_to"), []);
  assert.deepEqual(histogramsOf("", FIRST), []);
});

test("quantiles inside buckets, beyond the last one, and of what came since", () => {
  const text = ["b_bucket{model=\"a \\\"x\\\"\",le=\"1\"} 2", "b_bucket{le=\"2\",model=\"a \\\"x\\\"\"} 6",
    "b_bucket{model=\"a \\\"x\\\"\",le=\"+Inf\"} 8",
    "b_sum{model=\"a \\\"x\\\"\"} 14", "b_count{model=\"a \\\"x\\\"\"} 8"].join("\n");
  const [histogram] = histogramsOf(text, "b");
  assert.equal(histogram!.model, 'a "x"');
  assert.deepEqual(quantile(histogram!, 0.5), { value: 1.5, isAbove: false });
  assert.deepEqual(quantile(histogram!, 0.99), { value: 2, isAbove: true });
  const before = { ...histogram!, count: 2, sum: 1, buckets: [{ until: 1, count: 2 }, { until: 2, count: 2 },
    { until: Infinity, count: 2 }] };
  assert.deepEqual(quantile(since(histogram!, before), 0.5), { value: 1.75, isAbove: false });
  assert.equal(since(histogram!, { ...histogram!, count: 99 }), histogram);
  assert.equal(quantile({ ...histogram!, count: 0 }, 0.5), undefined);
});

test("a request's phases and rate, as looks at it tell them", () => {
  const request = (phase: RequestInfo["phase"], tokens: number, age_s: number): RequestInfo =>
    ({ id: "r", model: "m", phase, tokens, age_s });
  let traces: Trace[] = tracesAfter([], [request("waiting", 0, 2)], 10_000);
  assert.deepEqual(traces[0]!.spans, [{ phase: "waiting", fromMs: 8_000, toMs: 10_000 }]);
  assert.equal(rateOf(traces[0]!), undefined);
  traces = tracesAfter(traces, [request("answer", 10, 3)], 11_000);
  traces = tracesAfter(traces, [request("answer", 50, 5)], 13_000);
  assert.deepEqual(traces[0]!.spans.map(({ phase, fromMs, toMs }) => [phase, fromMs, toMs]), [["waiting", 8_000, 11_000], ["answer",
    11_000, 13_000]]);
  assert.equal(traces[0]!.firstMs, 11_000);
  assert.equal(rateOf(traces[0]!), 50 / 3);
  traces = tracesAfter(traces, [], 14_000);
  assert.equal(traces[0]!.isEnded, true);
  assert.equal(traces[0]!.spans.at(-1)!.toMs, 13_000);
});

test("traces are kept to a limit; those in progress stay", () => {
  const many = Array.from({ length: 80 }, (_, at): RequestInfo => ({ id: `${at}`, model: "m", phase: "answer" }));
  let traces = tracesAfter([], many, 0);
  assert.equal(traces.length, 80);
  traces = tracesAfter(traces, many.slice(70), 1);
  assert.equal(traces.length, TRACES_KEPT);
  assert.equal(traces.filter(({ isEnded }) => !isEnded).length, 10);
});

test("phases in words", () => {
  const of = (more: Partial<RequestInfo>) => phaseText({ id: "", model: "", phase: "waiting", ...more });
  assert.equal(of({ place: 3 }), "waits, place 3");
  assert.equal(of({}), "waits");
  assert.equal(of({ phase: "prompt", prompt_done: 5, prompt_tokens: 9 }), "reads 5 of 9");
  assert.equal(of({ phase: "prompt" }), "reads the prompt");
});
