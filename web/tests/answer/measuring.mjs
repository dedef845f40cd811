// Figures of Chromium's own: processor time, memory, the longest task of the page's main thread.

export async function openMetrics(page) {
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  return client;
}

export async function metrics(client) {
  const found = (await client.send("Performance.getMetrics")).metrics;
  return Object.fromEntries(found.map(({ name, value }) => [name, value]));
}

export async function heapMiB(client) {
  await client.send("HeapProfiler.collectGarbage");
  return Math.round((await metrics(client)).JSHeapUsedSize / 1048576 * 10) / 10;
}

export const startTrace = ({ browser, page }) => browser.startTracing(page, { categories: ["toplevel", "__metadata"] });

// Milliseconds of processor time of the longest task since startTrace.
export async function longestTask({ browser }) {
  const { traceEvents } = JSON.parse(String(await browser.stopTracing()));
  const threads = traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
  const isMain = new Set(threads.map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = traceEvents.filter(({ name, pid, tid }) => name.endsWith("RunTask") && isMain.has(`${pid} ${tid}`));
  return Math.round(tasks.reduce((most, { tdur = 0 }) => Math.max(most, tdur), 0) / 100) / 10;
}
