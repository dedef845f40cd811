// Measures the cost of rendering a streamed answer: node web/tests/answer/streaming_cost.mjs [--json FILE] [--quick] [--only SHAPE,...]
// 1. Curves: processor time of the page's main thread per update (20 characters, what 300 tokens/s bring in a frame), by the shape of the
//    answer, its length so far and the messages before it. A curve should be flat.
// 2. A stream: 20,000 tokens at 300 tokens/s through real frames: frames, the longest task by processor time, and the heap on the way.
//    Frames are by the clock, so a busy machine lengthens them; processor time is the page's own.
import { writeFileSync } from "node:fs";
import { openPage } from "./browser.mjs";
import { heapMiB, longestTask, metrics, openMetrics, startTrace } from "./measuring.mjs";
import { SHAPES } from "./shapes.mjs";

const LENGTHS = [5_000, 10_000, 20_000, 40_000, 80_000];
const MESSAGES = [1, 10, 40];
const UPDATE_CHARACTERS = 20;
const UPDATES = 20;
const TOKENS = 20_000;
const TOKEN_CHARACTERS = 4;
const TOKENS_S = 300;

const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1].split(",") : undefined;
const quick = process.argv.includes("--quick");
const jsonFile = process.argv[process.argv.indexOf("--json") + 1];

async function measured(it) {
  const client = await openMetrics(it.page);
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
    const before = Array.from({ length: count - 1 }, () => ({ text: old, isGrowing: false }));
    bench.show(...before, { text: whole.slice(0, end - 1_000), isGrowing: true });
    await new Promise(requestAnimationFrame);
    await bench.grow(whole.slice(0, end));
    const scroller = document.querySelector(".page");
    for (let frame = 0; frame < 30; ++frame) {
      scroller.scrollTop = scroller.scrollHeight; // the end is in sight, as in the chat
      await new Promise(requestAnimationFrame);
    }
  }, [text, length, before, SHAPES.mixed(4_000)]);
  const start = await metrics(client);
  await it.page.evaluate(async ([whole, from, step, updates]) => {
    const scroller = document.querySelector(".page");
    for (let at = 1; at <= updates; ++at) {
      await window.lockstepBench.grow(whole.slice(0, from + at * step));
      scroller.scrollTop = scroller.scrollHeight;
      await new Promise(requestAnimationFrame);
    }
    await new Promise(requestAnimationFrame);
  }, [text, length, UPDATE_CHARACTERS, UPDATES]);
  const end = await metrics(client);
  const per = (name) => Math.round((end[name] - start[name]) * 1000 / UPDATES * 100) / 100;
  return { all: per("TaskDuration"), script: per("ScriptDuration"), style: per("RecalcStyleDuration"), layout: per("LayoutDuration") };
}

function print({ shape, length, messages, ms }) {
  const many = `${String(length).padStart(6)} characters, ${String(messages).padStart(2)} messages`;
  console.log(`${shape.padEnd(12)} ${many}: ${String(ms.all).padStart(6)} ms ` +
    `(script ${ms.script}, style ${ms.style}, layout ${ms.layout})`);
}

async function curves(it, client) {
  const rows = [];
  for (const [shape, make] of Object.entries(SHAPES).filter(([name]) => !only || only.includes(name))) {
    const text = make(LENGTHS.at(-1) + UPDATES * UPDATE_CHARACTERS);
    for (const length of quick ? LENGTHS.slice(0, 3) : LENGTHS) {
      rows.push({ shape, length, messages: 1, ms: await perUpdate(it, client, text, length, 1) });
      print(rows.at(-1));
    }
  }
  for (const messages of only ? [] : MESSAGES) {
    rows.push({ shape: "mixed", length: 20_000, messages, ms: await perUpdate(it, client, SHAPES.mixed(20_400), 20_000, messages) });
    print(rows.at(-1));
  }
  return rows;
}

// Feeds `characters` of the text at the pace of the tokens, and watches the frames.
async function feed(page, text, from, to) {
  return page.evaluate(async ([whole, begin, end, perSecond]) => {
    const frames = { longest_ms: 0, over_50: 0, over_100: 0, count: 0 };
    const scroller = document.querySelector(".page");
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
      scroller.scrollTop = scroller.scrollHeight;
    }
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
    await startTrace(it);
    const frames = await feed(it.page, text, characters * part / 4, characters * (part + 1) / 4);
    parts.push({ ...frames, longest_task_ms: await longestTask(it) });
    heap.push(await heapMiB(client));
  }
  const end = await metrics(client);
  await it.page.evaluate((whole) => window.lockstepBench.grow(whole, false), text);
  await it.page.evaluate((whole) => { window.lockstepBench.show(); window.lockstepBench.show({ text: whole, isGrowing: false }); }, text);
  const atOnce = await heapMiB(client);
  const result = { shape, tokens: characters / TOKEN_CHARACTERS, frames: parts, heap_mib: heap, heap_at_once_mib: atOnce,
    main_thread_s: Math.round((end.TaskDuration - start.TaskDuration) * 10) / 10 };
  const per = (name) => parts.map((part) => Math.round(part[name] * 10) / 10).join(", ");
  console.log(`stream ${shape}: longest frame ${per("longest_ms")} ms; longest task by processor time ${per("longest_task_ms")} ms; ` +
    `over 100 ms ${per("over_100")} of ${per("count")} frames; heap ${heap.join(", ")} MiB, at once ${atOnce} MiB; ` +
    `main thread ${result.main_thread_s} s`);
  return result;
}

const it = await openPage("#/gallery/bench", {}, ["--enable-precise-memory-info"]);
try {
  const client = await measured(it);
  const result = { curves: await curves(it, client), streams: [] };
  const streamed = only && !only.includes("stream") ? [] : quick ? ["mixed"] : ["mixed", "paragraph", "code"];
  for (const shape of streamed) result.streams.push(await stream(it, client, shape));
  if (process.argv.includes("--json")) writeFileSync(jsonFile, JSON.stringify(result, null, 2));
} finally {
  await it.close();
}
