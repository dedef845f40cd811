// The picture of a token timeline: one bar a token, as one path, and the figures that go with it.

interface TimelineShape {
  width: number; bars: string; cut: string; // `cut`: the marks on bars that are taller than the picture
  top_ms: number; // what the full height stands for
  ghost_y: number | undefined; slowest: number; median_ms: number; slowest_x: number;
}

export const HEIGHT = 80;
const STEP = 4; // from bar to bar
const BAR = 3;
const HEAD_ROOM = 4; // medians that fit into the picture; a pause of seconds would flatten all the rest

export function timelineShape(times: number[], predicted_ms?: number): TimelineShape {
  const known = times.map((time) => (Number.isFinite(time) && time > 0 ? time : 0));
  const median_ms = [...known].sort((a, b) => a - b)[known.length >> 1] ?? 0;
  const largest = known.reduce((most, time) => Math.max(most, time), 0);
  const top_ms = Math.max(Math.min(largest, HEAD_ROOM * median_ms || largest), (predicted_ms ?? 0) * 1.15, 0.001);
  const y = (time: number): number => HEIGHT - (Math.min(time, top_ms) / top_ms) * HEIGHT;
  const mark = (at: number): string => `M${at * STEP} 0h${BAR}v3h-${BAR}z`;
  const bar = (time: number, at: number): string => `M${at * STEP} ${HEIGHT}V${y(time).toFixed(1)}h${BAR}V${HEIGHT}z`;
  const slowest = known.indexOf(largest);
  return {
    width: Math.max(1, known.length * STEP), top_ms, median_ms, slowest, slowest_x: slowest * STEP + BAR / 2,
    bars: known.map(bar).join(""), cut: known.map((time, at) => (time > top_ms * 1.001 ? mark(at) : "")).join(""),
    ghost_y: predicted_ms === undefined ? undefined : y(predicted_ms),
  };
}

// The same figures for a table: at most 40 rows, each of equally many tokens.
export function timelineRows(times: number[]): { first: number; last: number; mean_ms: number; slowest_ms: number }[] {
  const size = Math.max(1, Math.ceil(times.length / 40));
  const rows = [];
  for (let from = 0; from < times.length; from += size) {
    const part = times.slice(from, from + size);
    rows.push({ first: from + 1, last: from + part.length, mean_ms: part.reduce((sum, time) => sum + time, 0) / part.length,
      slowest_ms: Math.max(...part) });
  }
  return rows;
}
