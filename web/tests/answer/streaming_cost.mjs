// What drawing an answer costs while it streams: node web/tests/answer/streaming_cost.mjs [--json FILE] [--quick]
// 1. Curves: processor time of the page's main thread per update (20 characters, what 300 tokens/s bring in a frame), by the shape of the
//    answer, its length so far and the messages before it. A curve should be flat.
// 2. A stream: 20,000 tokens at 300 tokens/s through real frames; the longest frame, the longest task, and the heap on the way.
import { writeFileSync } from "node:fs";
import { openPage } from "./browser.mjs";
import { SHAPES } from "./shapes.mjs";

const LENGTHS = [5_000, 10_000, 20_000, 40_000, 80_000];
const MESSAGES = [1, 10, 40];
const UPDATE_CHARACTERS = 20;
const UPDATES = 20;
const TOKENS = 20_000;
const TOKEN_CHARACTERS = 4;
const TOKENS_S = 300;

const quick = process.argv.includes("--quick");
const jsonFile = process.argv[process.argv.indexOf("--json") + 1];

async function metrics(client) {
  const found = (await client.send("Performance.getMetrics")).metrics;
  return Object.fromEntries(found.map(({ name, value }) => [name, value]));
}

async function heapMiB(client) {
  await client.send("HeapProfiler.collectGarbage");
  return Math.round((await metrics(client)).JSHeapUsedSize / 1048576 * 10) / 10;
}

async function measured(it) {
  const client = await it.page.context().newCDPSession(it.page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  await it.page.waitForFunction(() => window.lockstepBench);
  await it.page.evaluate(() => window.lockstepBench.show({ text: "```js\nlet a;\n```\n\n$x$", isGrowing: false }));
  await it.page.waitForSelector("[data-bench] math");
  return client;
}

// Milliseconds of the main thread per update, each in a frame of its own.
async function perUpdate(it, client, text, length, before) {
  await it.page.evaluate(async ([whole, end, count, old]) => {
    const bench = window.lockstepBench;
    bench.show();
    bench.show(...Array.from({ length: count - 1 }, () => ({ text: old, isGrowing: false })), { text: whole.slice(0, end / 2), isGrowing: true });
    await new Promise(requestAnimationFrame);
    await bench.grow(whole.slice(0, end));
    for (let frame = 0; frame < 30; ++frame) await new Promise(requestAnimationFrame);
  }, [text, length, before, SHAPES.mixed(4_000)]);
  const start = await metrics(client);
  await it.page.evaluate(async ([whole, from, step, updates]) => {
    for (let at = 1; at <= updates; ++at) {
      await window.lockstepBench.grow(whole.slice(0, from + at * step));
      await new Promise(requestAnimationFrame);
    }
    await new Promise(requestAnimationFrame);
  }, [text, length, UPDATE_CHARACTERS, UPDATES]);
  const end = await metrics(client);
  return Math.round((end.TaskDuration - start.TaskDuration) * 1000 / UPDATES * 100) / 100;
}

async function curves(it, client) {
  const rows = [];
  for (const [shape, make] of Object.entries(SHAPES)) {
    const text = make(LENGTHS.at(-1) + UPDATES * UPDATE_CHARACTERS);
    const row = { shape };
    for (const length of quick ? LENGTHS.slice(0, 3) : LENGTHS) row[length] = await perUpdate(it, client, text, length, 1);
    rows.push(row);
    console.log(shape.padEnd(12), Object.entries(row).slice(1).map(([length, ms]) => `${length}: ${ms} ms`).join("   "));
  }
  const after = { shape: "mixed, after messages" };
  for (const before of MESSAGES) after[before] = await perUpdate(it, client, SHAPES.mixed(20_400), 20_000, before);
  console.log(after.shape, MESSAGES.map((before) => `${before}: ${after[before]} ms`).join("   "));
  return [...rows, after];
}

// Feeds `characters` of the text at the pace of the tokens, and watches the frames.
async function feed(page, text, from, to) {
  return page.evaluate(async ([whole, begin, end, perSecond]) => {
    const frames = { longest_ms: 0, over_50: 0, over_100: 0, count: 0, longest_task_ms: 0 };
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) frames.longest_task_ms = Math.max(frames.longest_task_ms, duration);
    });
    observer.observe({ entryTypes: ["longtask"] });
    const start = performance.now();
    let last = start;
    for (let at = begin; at < end;) {
      const now = await new Promise(requestAnimationFrame);
      const gap = now - last;
      last = now;
      frames.count += 1;
      frames.longest_ms = Math.max(frames.longest_ms, gap);
      frames.over_50 += gap > 50 ? 1 : 0;
      frames.over_100 += gap > 100 ? 1 : 0;
      at = Math.min(end, begin + Math.floor((now - start) / 1000 * perSecond));
      void window.lockstepBench.grow(whole.slice(0, Math.max(begin, at)));
    }
    observer.disconnect();
    return frames;
  }, [text, from, to, TOKENS_S * TOKEN_CHARACTERS]);
}

async function stream(it, client, shape) {
  const characters = (quick ? 2_000 : TOKENS) * TOKEN_CHARACTERS;
  const text = SHAPES[shape](characters);
  await it.page.evaluate(() => { window.lockstepBench.show(); });
  const heap = [await heapMiB(client)];
  await it.page.evaluate(() => window.lockstepBench.show({ text: "", isGrowing: true }));
  const start = await metrics(client);
  const parts = [];
  for (let part = 0; part < 4; ++part) {
    parts.push(await feed(it.page, text, characters * part / 4, characters * (part + 1) / 4));
    heap.push(await heapMiB(client));
  }
  const end = await metrics(client);
  await it.page.evaluate((whole) => window.lockstepBench.grow(whole, false), text);
  await it.page.evaluate((whole) => { window.lockstepBench.show(); window.lockstepBench.show({ text: whole, isGrowing: false }); }, text);
  const atOnce = await heapMiB(client);
  const result = { shape, tokens: characters / TOKEN_CHARACTERS, frames: parts, heap_mib: heap, heap_at_once_mib: atOnce,
    main_thread_s: Math.round((end.TaskDuration - start.TaskDuration) * 10) / 10 };
  console.log(`stream ${shape}: longest frame ${parts.map((part) => part.longest_ms.toFixed(0)).join(", ")} ms; longest task ` +
    `${parts.map((part) => part.longest_task_ms.toFixed(0)).join(", ")} ms; over 100 ms ${parts.map((part) => part.over_100).join(", ")} of ` +
    `${parts.map((part) => part.count).join(", ")} frames; heap ${heap.join(", ")} MiB, at once ${atOnce} MiB; main thread ${result.main_thread_s} s`);
  return result;
}

const it = await openPage("#/gallery/bench", {}, ["--enable-precise-memory-info"]);
try {
  const client = await measured(it);
  const result = { curves: await curves(it, client), streams: [] };
  for (const shape of quick ? ["mixed"] : ["mixed", "paragraph", "code"]) result.streams.push(await stream(it, client, shape));
  if (process.argv.includes("--json")) writeFileSync(jsonFile, JSON.stringify(result, null, 2));
} finally {
  await it.close();
}
