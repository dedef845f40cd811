// Numbers as people read them. Each takes undefined for a value that is not known and returns "" for it.

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "";
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

export const rate = (perSecond: number | undefined): string => (perSecond === undefined ? "" : `${bytes(perSecond)}/s`);

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : Math.round(value).toLocaleString("en-US");
}

// 3, 12.4, 0.31: three digits that matter.
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 100 ? Math.round(value).toLocaleString("en-US") : value.toFixed(size >= 10 ? 1 : 2);
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "";
  if (Number(value.toFixed(1)) < 60) return `${figure(value)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(value / 60);
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.round(value / 86400)} days`;
}

export function microseconds(value: number | null | undefined): string {
  if (value === null || value === undefined || value <= 0) return "";
  return value < 1000 ? `${figure(value)} µs` : `${figure(value / 1000)} ms`;
}

export const watts = (value: number | null | undefined): string =>
  value === null || value === undefined ? "" : `${figure(value)} W`;

export const clock = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB");

export const plural = (many: number, one: string, more = `${one}s`): string => `${count(many)} ${many === 1 ? one : more}`;
