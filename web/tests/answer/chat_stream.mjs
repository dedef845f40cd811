// Measures an answer of 20,000 tokens at 300 tokens/s through the whole chat: the stream, the history in the browser and the view.
//   node web/tests/answer/chat_stream.mjs [--json FILE] [--quick]
// It is told twice. First frames and tasks are watched: frames are by the clock, so a busy machine lengthens them; the longest task is in
// processor time, which is the page's own. Then memory is read at each quarter, which stops the page for a while.
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { openPage } from "./browser.mjs";
import { heapMiB, longestTask, metrics, openMetrics, startTrace } from "./measuring.mjs";
import { SHAPES } from "./shapes.mjs";
import { tellingNode } from "./telling_node.mjs";

const TOKENS = process.argv.includes("--quick") ? 2_000 : 20_000;
const TOKEN_CHARACTERS = 4;
const TOKENS_S = 300;
const QUARTERS = [0.25, 0.5, 0.75, 1];

const text = SHAPES.mixed(TOKENS * TOKEN_CHARACTERS);
const tokens = text.match(new RegExp(`[^]{1,${TOKEN_CHARACTERS}}`, "g"));
const jsonFile = process.argv.includes("--json") ? process.argv[process.argv.indexOf("--json") + 1] : undefined;
const load = () => loadavg().map((value) => Math.round(value * 10) / 10);

// Waits until so much of the answer is there, and returns the frames until then.
const framesUntil = (page, wanted) => page.evaluate(async (count) => {
  const frames = { count: 0, longest_ms: 0, over_50: 0, over_100: 0 };
  const told = () => Number((document.querySelector(".now")?.textContent.match(/([\d,]+) tokens?/)?.[1] ?? "").replaceAll(",", ""));
  let last = performance.now();
  for (;;) {
    const now = await new Promise(requestAnimationFrame);
    const gap = now - last;
    last = now;
    frames.count += 1;
    frames.longest_ms = Math.max(frames.longest_ms, Math.round(gap));
    frames.over_50 += gap > 50 ? 1 : 0;
    frames.over_100 += gap > 100 ? 1 : 0;
    if (told() >= count || document.querySelector("article.answer .tools")) return frames;
  }
}, wanted === 1 ? Infinity : tokens.length * wanted);

async function told(work) {
  const it = await openPage("#/chat", {}, ["--enable-precise-memory-info"], await tellingNode(tokens, TOKENS_S));
  try {
    const { page } = it;
    const client = await openMetrics(page);
    await page.getByText("teller answers.").waitFor();
    const field = page.getByRole("textbox", { name: "Message", exact: true });
    await field.fill("Tell me everything");
    return await work(it, client, () => field.press("Enter"));
  } finally {
    await it.close();
  }
}

async function watchFrames(it, client, send) {
  const start = await metrics(client);
  await startTrace(it);
  await send();
  const frames = await framesUntil(it.page, 1);
  const longest_task_ms = await longestTask(it);
  const end = await metrics(client);
  const seconds = (name) => Math.round((end[name] - start[name]) * 10) / 10;
  return { ...frames, longest_task_ms, main_thread_s: seconds("TaskDuration"), seconds: seconds("Timestamp"),
    line: await it.page.locator("article.answer .tiny.line").innerText() };
}

async function watchHeap(it, client, send) {
  const heap = [await heapMiB(client)];
  await send();
  for (const quarter of QUARTERS) {
    await framesUntil(it.page, quarter);
    heap.push(await heapMiB(client));
  }
  await it.page.reload();
  await it.page.locator("article.answer .tools").waitFor();
  await it.page.locator("article.answer math").first().waitFor();
  return { heap_mib: heap, heap_at_once_mib: await heapMiB(client) };
}

const load_before = load();
const frames = await told(watchFrames);
console.log(`${frames.line}\n${frames.count} frames in ${frames.seconds} s, the longest ${frames.longest_ms} ms, ` +
  `${frames.over_50} over 50 ms, ${frames.over_100} over 100 ms\nlongest task by processor time ${frames.longest_task_ms} ms; main thread ${frames.main_thread_s} s`);
const heap = await told(watchHeap);
console.log(`heap at the start and at each quarter ${heap.heap_mib.join(", ")} MiB; of the same answer after a reload ` +
  `${heap.heap_at_once_mib} MiB\nload of the machine ${load_before.join(", ")} before, ${load().join(", ")} after`);
const result = { tokens: tokens.length, load_before, load_after: load(), ...frames, ...heap };
if (jsonFile) writeFileSync(jsonFile, JSON.stringify(result, null, 2));
