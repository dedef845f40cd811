// Lines of /cluster/log: kept up to a limit, filtered by level and words.
export interface LogLine { number: number; at_ms: number; level: string; text: string }
export interface LogAnswer { lines: LogLine[]; next: number }

export const LINES_KEPT = 2_000;
const LEVELS = ["info", "warn", "error"];

// A node that has restarted counts from 1 again, below `next`: its lines follow the old ones.
export function appended(lines: LogLine[], answer: LogAnswer): LogLine[] {
  return [...lines, ...answer.lines].slice(-LINES_KEPT);
}

export const hasRestarted = (after: number, answer: LogAnswer): boolean => answer.next < after;

export function rankOf(level: string): number {
  return Math.max(0, LEVELS.indexOf(level));
}

// `least` is the lowest level shown; all words must occur, in any order.
export function filtered(lines: LogLine[], words: string, least: string): LogLine[] {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return lines.filter(({ level, text }) => rankOf(level) >= rankOf(least) && wanted.every((word) => text.toLowerCase().includes(word)));
}
