// Where maths begins and ends: $..$, $$..$$, \(..\) and \[..\]. A dollar opens maths only where no space follows it, and closes it only
// where no space precedes it and no digit follows it (the rule of pandoc's tex_math_dollars), so "$5 and $6" is money. A backtick ends
// the search, so that a formula never reaches out of a code span, and so does a blank line.
import { MATHS_MAX } from "./limits";

interface MathsFound { raw: string; source: string; isDisplay: boolean }

const INLINE: [RegExp, boolean][] = [
  [/^\$\$(?!\$)((?:\\[^`]|[^\\$`])+?)\$\$(?!\$)/, true],
  [/^\$(?![\s$])((?:\\[^`]|[^\\$`])*?(?:\\[^`]|[^\\$`\s]))\$(?![A-Za-z\d$])/, false],
  [/^\\\(((?:\\(?!\))[^`]|[^\\`])+?)\\\)/, false],
  [/^\\\[((?:\\(?!\])[^`]|[^\\`])+?)\\\]/, true],
];
const BLOCK: RegExp[] = [
  /^ {0,3}\$\$(?!\$)((?:\\[^\n]|\\?\n(?![ \t]*\n)|[^\\$\n])+?)\$\$[ \t]*(?:\n+|$)/,
  /^ {0,3}\\\[((?:\\(?!\])[^\n]|\\?\n(?![ \t]*\n)|[^\\\n])+?)\\\][ \t]*(?:\n+|$)/,
];
// "$5/month or 6$" begins with a price: a number, then a word.
const PRICE = /^\d[\d.,]*(?:\/|\s+)[a-z]{2,}/i;

const WORD = /[A-Za-z\d]$/;

// The maths that `text` begins with, after what `before` ends with.
export function inlineMaths(text: string, before: string): MathsFound | undefined {
  const first = text.charCodeAt(0);
  if (first !== 36 && first !== 92) return undefined;
  const head = text.slice(0, MATHS_MAX + 4);
  for (const [rule, isDisplay] of INLINE) {
    const found = rule.exec(head);
    if (!found || (!isDisplay && first === 36 && (PRICE.test(found[1]) || WORD.test(before)))) continue;
    return { raw: found[0], source: found[1].trim(), isDisplay };
  }
  return undefined;
}

// The block of maths that `text` begins with; `raw` holds the blank lines that follow.
export function blockMaths(text: string): MathsFound | undefined {
  const head = text.slice(0, MATHS_MAX + 64);
  for (const rule of BLOCK) {
    const found = rule.exec(head);
    if (found) return { raw: found[0], source: found[1].trim(), isDisplay: true };
  }
  return undefined;
}

// Where the next line begins that may open a block of maths, or -1.
export function blockMathsStart(text: string): number {
  const starts = ["$$", "\\["].map((mark) => lineWith(text, mark)).filter((at) => at >= 0);
  return starts.length === 0 ? -1 : Math.min(...starts);
}

function lineWith(text: string, mark: string): number {
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + mark.length)) {
    const line = text.lastIndexOf("\n", at) + 1;
    if (line > 0 && at - line <= 3 && text.slice(line, at).trim() === "") return line;
  }
  return -1;
}

// Where the formulas of a text lie, so that stars and underscores in them end no emphasis around them.
export function mathsRanges(text: string): [number, number][] {
  const ranges: [number, number][] = [];
  for (let at = 0; at < text.length; ++at) {
    const code = text.charCodeAt(at);
    if (code !== 36 && code !== 92) continue;
    const found = inlineMaths(text.slice(at), text.slice(Math.max(0, at - 1), at));
    if (found) {
      ranges.push([at, at + found.raw.length]);
      at += found.raw.length - 1;
    } else if (code === 92) {
      at += 1;
    }
  }
  return ranges;
}
