// A time that may be far below a second: 0.53 ms, 41 ms, 1.3 s.
import { figure, seconds } from "../lib/format";

export function duration(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  return value < 1 ? `${figure(value * 1000)} ms` : seconds(value);
}

// Whole seconds, for what counts up while one looks: 4 s, 2 min 5 s.
export function elapsed(value: number): string {
  const whole = Math.max(0, Math.round(value));
  return whole < 60 ? `${whole} s` : seconds(whole);
}
