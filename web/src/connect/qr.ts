// QR codes (ISO/IEC 18004:2015) of short texts: bytes in UTF-8, error correction M, versions 1 to 10, which is 213 bytes.
const VERSIONS: { check: number; blocks: number[]; centres: number[] }[] = [ // blocks: data bytes of each (tables 9 and E.1)
  { check: 10, blocks: [16], centres: [] },
  { check: 16, blocks: [28], centres: [6, 18] },
  { check: 26, blocks: [44], centres: [6, 22] },
  { check: 18, blocks: [32, 32], centres: [6, 26] },
  { check: 24, blocks: [43, 43], centres: [6, 30] },
  { check: 16, blocks: [27, 27, 27, 27], centres: [6, 34] },
  { check: 18, blocks: [31, 31, 31, 31], centres: [6, 22, 38] },
  { check: 22, blocks: [38, 38, 39, 39], centres: [6, 24, 42] },
  { check: 22, blocks: [36, 36, 36, 37, 37], centres: [6, 26, 46] },
  { check: 26, blocks: [43, 43, 43, 43, 44], centres: [6, 28, 50] },
];
const MASKS: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0, (_, y) => y % 2 === 0, (x) => x % 3 === 0, (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0, (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];
const POWERS: number[] = [1]; // of 2 in the field of 256 elements by x^8 + x^4 + x^3 + x^2 + 1
for (let at = 1; at < 255; ++at) POWERS.push((POWERS[at - 1] << 1) ^ (POWERS[at - 1] & 128 ? 0x11d : 0));

type Grid = (boolean | undefined)[][]; // rows; undefined: not written yet

// Rows of modules, true is dark; without the quiet zone of four modules. Throws RangeError for a text that is too long.
// `mask` forces one of the eight patterns, else the one with the least penalty is taken.
export function qrCode(text: string, mask?: number): boolean[][] {
  const bytes = [...new TextEncoder().encode(text)];
  const version = 1 + VERSIONS.findIndex(({ blocks }, at) => bytes.length * 8 + (at < 9 ? 12 : 20) <= 8 * sum(blocks));
  if (version === 0) throw new RangeError("the text is too long for a QR code of version 10");
  const grid = patterns(version);
  const isFixed = grid.map((row) => row.map((module) => module !== undefined));
  place(grid, withChecks(dataOf(bytes, version), version));
  const masks = mask === undefined ? [0, 1, 2, 3, 4, 5, 6, 7] : [mask];
  const codes = masks.map((number) => masked(grid, isFixed, number));
  return codes.reduce((best, code) => (penalty(code) < penalty(best) ? code : best));
}

function dataOf(bytes: number[], version: number): number[] {
  const whole = sum(VERSIONS[version - 1].blocks);
  const bits: number[] = [];
  const put = (value: number, length: number): void => { for (let at = length - 1; at >= 0; --at) bits.push((value >> at) & 1); };
  put(0b0100, 4); // bytes
  put(bytes.length, version < 10 ? 8 : 16);
  for (const byte of bytes) put(byte, 8);
  put(0, Math.min(4, 8 * whole - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let at = 0; bits.length < 8 * whole; ++at) put(at % 2 === 0 ? 0xec : 0x11, 8);
  return Array.from({ length: whole }, (_, at) => bits.slice(8 * at, 8 * at + 8).reduce((byte, bit) => 2 * byte + bit, 0));
}

function times(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : POWERS[(POWERS.indexOf(a) + POWERS.indexOf(b)) % 255];
}

// Reed and Solomon's check bytes: the remainder by (x - 1)(x - 2)(x - 4)...
function checksOf(data: number[], count: number): number[] {
  let divisor = [1];
  for (let at = 0; at < count; ++at) {
    const next = [...divisor, 0];
    divisor.forEach((factor, place) => { next[place + 1] ^= times(factor, POWERS[at]); });
    divisor = next;
  }
  const rest = [...data, ...new Array<number>(count).fill(0)];
  for (let at = 0; at < data.length; ++at) {
    const factor = rest[at];
    divisor.forEach((value, place) => { rest[at + place] ^= times(value, factor); });
  }
  return rest.slice(data.length);
}

function withChecks(data: number[], version: number): number[] {
  const { check, blocks } = VERSIONS[version - 1];
  let from = 0;
  const parts = blocks.map((length) => data.slice(from, (from += length)));
  return [...interleaved(parts), ...interleaved(parts.map((part) => checksOf(part, check)))];
}

function interleaved(parts: number[][]): number[] {
  const longest = Math.max(...parts.map((part) => part.length));
  return Array.from({ length: longest }, (_, at) => parts.flatMap((part) => (at < part.length ? [part[at]] : []))).flat();
}

// Finders, timing lines, alignment marks and version; places for the format are reserved with false.
function patterns(version: number): Grid {
  const size = 17 + 4 * version;
  const grid: Grid = Array.from({ length: size }, () => new Array<boolean | undefined>(size).fill(undefined));
  for (let at = 0; at < size; ++at) grid[6][at] = grid[at][6] = at % 2 === 0;
  for (const [left, top] of [[0, 0], [size - 7, 0], [0, size - 7]]) square(grid, left + 3, top + 3, 4, (ring) => ring !== 2 && ring !== 4);
  const { centres } = VERSIONS[version - 1];
  const last = centres.length - 1;
  centres.forEach((y, row) => centres.forEach((x, column) => {
    const isFinder = (row === 0 && (column === 0 || column === last)) || (row === last && column === 0);
    if (!isFinder) square(grid, x, y, 2, (ring) => ring !== 1);
  }));
  for (let at = 0; at < 9; ++at) {
    grid[8][at] ??= false;
    grid[at][8] ??= false;
    if (at < 8) grid[8][size - 1 - at] ??= false;
    if (at < 8) grid[size - 1 - at][8] ??= false;
  }
  grid[size - 8][8] = true;
  if (version >= 7) {
    const bits = (version << 12) | remainder(version, 0x1f25, 12);
    for (let at = 0; at < 18; ++at) {
      const isDark = ((bits >> at) & 1) === 1;
      grid[size - 11 + (at % 3)][Math.floor(at / 3)] = isDark;
      grid[Math.floor(at / 3)][size - 11 + (at % 3)] = isDark;
    }
  }
  return grid;
}

function square(grid: Grid, x: number, y: number, radius: number, isDark: (ring: number) => boolean): void {
  for (let down = -radius; down <= radius; ++down) {
    for (let right = -radius; right <= radius; ++right) {
      const isInside = grid[y + down] !== undefined && x + right >= 0 && x + right < grid.length;
      if (isInside) grid[y + down][x + right] = isDark(Math.max(Math.abs(down), Math.abs(right)));
    }
  }
}

function remainder(value: number, divisor: number, length: number): number {
  let rest = value;
  for (let at = 0; at < length; ++at) rest = (rest << 1) ^ ((rest >> (length - 1)) & 1 ? divisor : 0);
  return rest;
}

// In columns of two from the right, up and down by turns; what is left over stays light.
function place(grid: Grid, bytes: number[]): void {
  const size = grid.length;
  let bit = 0;
  for (let right = size - 1, up = true; right > 0; right -= right === 8 ? 3 : 2, up = !up) {
    for (let step = 0; step < size; ++step) {
      const row = grid[up ? size - 1 - step : step];
      for (const x of [right, right - 1]) {
        if (row[x] !== undefined) continue;
        row[x] = ((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7)) & 1) === 1;
        bit += 1;
      }
    }
  }
}

function masked(grid: Grid, isFixed: boolean[][], mask: number): boolean[][] {
  const code = grid.map((row, y) => row.map((module, x) => (isFixed[y][x] ? module! : module !== MASKS[mask](x, y))));
  const size = code.length;
  const bits = ((mask << 10) | remainder(mask, 0x537, 10)) ^ 0x5412; // 00: error correction M
  for (let at = 0; at < 15; ++at) {
    const isDark = ((bits >> at) & 1) === 1;
    code[at < 6 ? at : at < 8 ? at + 1 : size - 15 + at][8] = isDark;
    code[8][at < 8 ? size - 1 - at : at < 9 ? 7 : 14 - at] = isDark;
  }
  return code;
}

// Long runs, squares of four, what looks like a finder, and an uneven share of dark modules.
function penalty(code: boolean[][]): number {
  const lines = [...code, ...code.map((_, x) => code.map((row) => row[x]))].map((line) => line.map((dark) => (dark ? "1" : "0")).join(""));
  let points = 0;
  for (const line of lines) {
    for (const [run] of line.matchAll(/0{5,}|1{5,}/g)) points += run.length - 2;
    points += 40 * [...line.matchAll(/(?=00001011101|10111010000)/g)].length;
  }
  for (let y = 1; y < code.length; ++y) {
    for (let x = 1; x < code.length; ++x) {
      if (code[y][x] === code[y - 1][x] && code[y][x] === code[y][x - 1] && code[y][x] === code[y - 1][x - 1]) points += 3;
    }
  }
  const dark = code.flat().filter(Boolean).length / code.length ** 2;
  return points + 10 * Math.floor(Math.abs(dark - 0.5) * 20);
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
