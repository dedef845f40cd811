// Announces a growing answer to screen readers in whole sentences, without markdown; code is announced by its size.

const SAID_MAX = 2_000; // characters of one announcement

export class SentenceReader {
  private read = 0; // characters of the text that have been said

  // The text to announce now; "" for none.
  next(text: string, isGrowing: boolean): string {
    if (text.length < this.read) this.read = 0; // another answer
    const end = isGrowing ? lastEnd(text, this.read) : text.length;
    const part = spoken(text.slice(this.read, end));
    this.read = end;
    return part.length > SAID_MAX ? `${part.slice(0, SAID_MAX)} … and more` : part;
  }
}

const ENDS = /[.!?…。！？][)"'”’*_]*(?=\s)|\n[ \t]*\n/g;
const FENCE = /^ {0,3}(?:```|~~~)/;

// The end of the last whole sentence from `from` on. A code block that is still open is not said yet.
function lastEnd(text: string, from: number): number {
  let limit = text.length;
  let isOpen = false;
  let at = from;
  for (const line of text.slice(from).split(/(?<=\n)/)) {
    if (FENCE.test(line)) {
      isOpen = !isOpen;
      limit = isOpen ? at : text.length;
    }
    at += line.length;
  }
  let end = from;
  for (const found of text.slice(from, limit).matchAll(ENDS)) end = from + found.index + found[0].length;
  return end;
}

export function spoken(text: string): string {
  return text
    .replace(/^ {0,3}(```+|~~~+)([^\n]*)\n([^]*?)(?:^ {0,3}\1[`~]*[ \t]*$|$(?![^]))/gm, (_whole, _fence, language: string, code: string) =>
      `Code${language.trim() ? `, ${language.trim()}` : ""}, ${code.split("\n").length - 1} lines.\n`)
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, "$1")
    .replace(/^ {0,3}(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s+)?)/gm, "")
    .replace(/^[ \t|:-]+$/gm, "")
    .replace(/\*\*|__|~~|`/g, "")
    .replace(/(^|\s)[*_](\S[^*_\n]*)[*_](?=\W|$)/g, "$1$2")
    .replace(/\s*\n\s*/g, " ").trim();
}
