// Where the boxes of the picture stand: one under the other on a phone, else two rows that face each other like a flattened circle, so
// that every pair can have a line. Pure geometry in pixels.

export interface Box { x: number; y: number; width: number; height: number }
interface Layout { width: number; height: number; boxes: Box[]; isCompact: boolean; isColumn: boolean }
export interface Curve { path: string; x: number; y: number } // a line, and where its label stands

export const MACHINES_DRAWN = 16; // more are in the table only
const GAP = 18;
const MARGIN = 4;
const BOX_MAX = 250;
const COMPACT_BELOW = 158;
const COLUMN_BELOW = 560;
const GUTTER = 54; // at the right of a column, for lines that pass over boxes
const BETWEEN_ROWS = 104;
export const HEIGHT = { full: 164, compact: 84 };

export function layout(count: number, width: number): Layout {
  const shown = Math.min(count, MACHINES_DRAWN);
  return width < COLUMN_BELOW ? column(shown, width) : rows(shown, width);
}

function column(count: number, width: number): Layout {
  const isCompact = count > 6;
  const height = isCompact ? HEIGHT.compact : HEIGHT.full;
  const gap = isCompact ? 26 : 46;
  const inner = Math.min(width - 2 * MARGIN - (count > 2 ? GUTTER : 0), 330);
  const boxes = Array.from({ length: count }, (_, at) => ({ x: MARGIN, y: MARGIN + at * (height + gap), width: inner, height }));
  return { width, height: 2 * MARGIN + count * height + Math.max(0, count - 1) * gap, boxes, isCompact, isColumn: true };
}

function rows(count: number, width: number): Layout {
  const isLine = count <= 2;
  const first = isLine ? count : Math.ceil(count / 2);
  const gap = isLine ? Math.min(220, width / 4) : GAP;
  const inner = Math.min(BOX_MAX, (width - 2 * MARGIN - (first - 1) * gap) / Math.max(1, first));
  const isCompact = inner < COMPACT_BELOW;
  const height = isCompact ? HEIGHT.compact : HEIGHT.full;
  const place = (at: number, many: number, y: number): Box => {
    // A row with fewer boxes stands in the middle of the other one.
    const pitch = many === first ? inner + gap : Math.min((inner + gap) * 1.5, width / Math.max(1, many));
    const left = (width - ((many - 1) * pitch + inner)) / 2;
    return { x: left + at * pitch, y, width: inner, height };
  };
  const boxes: Box[] = [];
  for (let at = 0; at < first; ++at) boxes.push(place(at, first, MARGIN));
  const second = count - first;
  // Right to left, so that neighbours in the list are neighbours on the circle.
  for (let at = second - 1; at >= 0; --at) boxes.push(place(at, second, MARGIN + height + BETWEEN_ROWS));
  return { width, height: 2 * MARGIN + height * (second > 0 ? 2 : 1) + (second > 0 ? BETWEEN_ROWS : 0), boxes, isCompact, isColumn: false };
}

const middle = ({ x, width }: Box): number => x + width / 2;

// `nth` of the lines that leave the same side, so that lines over boxes lie apart.
export function curve(from: Box, to: Box, isColumn: boolean, nth = 0): Curve {
  const [a, b] = from.y < to.y || (from.y === to.y && from.x <= to.x) ? [from, to] : [to, from];
  if (isColumn) return columnCurve(a, b, nth);
  return a.y === b.y ? rowCurve(a, b) : crossCurve(a, b);
}

function columnCurve(a: Box, b: Box, nth: number): Curve {
  const x = middle(a);
  const gap = b.y - (a.y + a.height);
  if (gap < a.height) return { path: `M${x} ${a.y + a.height}L${x} ${b.y}`, x, y: a.y + a.height + gap / 2 };
  const edge = a.x + a.width;
  const out = edge + 14 + (nth % 5) * 8;
  const [top, bottom] = [a.y + a.height / 2, b.y + b.height / 2];
  return { path: `M${edge} ${top}C${out} ${top} ${out} ${bottom} ${edge} ${bottom}`, x: out - 4, y: (top + bottom) / 2 };
}

function rowCurve(a: Box, b: Box): Curve {
  const gap = b.x - (a.x + a.width);
  if (gap <= 220 && gap > 0 && gap < a.width + 2 * GAP) {
    const y = a.y + a.height / 2;
    return { path: `M${a.x + a.width} ${y}L${b.x} ${y}`, x: a.x + a.width + gap / 2, y };
  }
  // Over boxes of the same row: the line hangs into the space between the rows (of the upper row; the lower one bends upwards).
  const isUpper = a.y <= MARGIN;
  const y = isUpper ? a.y + a.height : a.y;
  const bend = y + (isUpper ? 1 : -1) * BETWEEN_ROWS * 0.6;
  return { path: `M${middle(a)} ${y}C${middle(a)} ${bend} ${middle(b)} ${bend} ${middle(b)} ${y}`, x: (middle(a) + middle(b)) / 2,
    y: y + (bend - y) * 0.75 };
}

function crossCurve(a: Box, b: Box): Curve {
  const [top, bottom] = [a.y + a.height, b.y];
  return { path: `M${middle(a)} ${top}L${middle(b)} ${bottom}`, x: (middle(a) + middle(b)) / 2, y: (top + bottom) / 2 };
}

// As much of a text as fits into `width` pixels at about `size` pixels a letter.
export function fitted(text: string, width: number, size = 7): string {
  const letters = Math.max(1, Math.floor(width / size));
  return text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`;
}
