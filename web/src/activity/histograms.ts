// Histograms of the text of /metrics (Prometheus text format 0.0.4; names: docs/operation.md), and the times that they tell.

export interface Histogram { model: string; buckets: { until: number; count: number }[]; sum: number;
  count: number } // counts are cumulative

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)$/;

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name, value] of text.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name!] = value!.replace(/\\(.)/g, (_, letter: string) => (letter === "n" ? "\n" : letter));
  }
  return labels;
}

// The histogram `name` of each model.
export function histogramsOf(text: string, name: string): Histogram[] {
  const found = new Map<string, Histogram>();
  for (const line of text.split("\n")) {
    const match = line.startsWith(name) ? line.match(LINE) : null;
    if (!match) continue;
    const labels = labelsOf(match[2] ?? "");
    const model = labels.model ?? "";
    const histogram = found.get(model) ?? { model, buckets: [], sum: 0, count: 0 };
    const value = Number(match[3]);
    if (match[1] === `${name}_bucket`) histogram.buckets.push({ until: labels.le === "+Inf" ? Infinity : Number(labels.le), count: value });
    else if (match[1] === `${name}_sum`) histogram.sum = value;
    else if (match[1] === `${name}_count`) histogram.count = value;
    else continue;
    found.set(model, histogram);
  }
  for (const { buckets } of found.values()) buckets.sort((a, b) => a.until - b.until);
  return [...found.values()].filter(({ count }) => count > 0);
}

// The counts added since `before`; all of `now` if the node has restarted since.
export function since(now: Histogram, before: Histogram | undefined): Histogram {
  if (!before || before.count > now.count) return now;
  return { model: now.model, sum: now.sum - before.sum, count: now.count - before.count,
    buckets: now.buckets.map(({ until, count }, at) => ({ until, count: count - (before.buckets[at]?.count ?? 0) })) };
}

// The value below which `part` of all lie, by a straight line inside the bucket, as Prometheus' histogram_quantile does. A value in the
// last bucket is known only to be above `until`.
export function quantile(histogram: Histogram, part: number): { value: number; isAbove: boolean } | undefined {
  if (histogram.count === 0) return undefined;
  const wanted = part * histogram.count;
  let [from, below] = [0, 0];
  for (const { until, count } of histogram.buckets) {
    if (count >= wanted && count > below) {
      if (until === Infinity) return { value: from, isAbove: true };
      return { value: from + ((until - from) * (wanted - below)) / (count - below), isAbove: false };
    }
    [from, below] = [until, count];
  }
  return { value: from, isAbove: true };
}
