// marked's lexer with the rules of an answer: maths and footnotes, HTML and entities left as they are written, and limits.
import { Hooks, Lexer, Tokenizer, type MarkedOptions, type Token, type Tokens } from "marked";
import { INLINE_NESTING_MAX, NESTING_MAX, PIECE_WORK_MAX, SETEXT_MAX, TABLE_COLUMNS_MAX } from "./limits";
import { blockMaths, blockMathsStart, inlineMaths, mathsRanges } from "./maths_rules";

const EMPHASIS_COST = 3;

// A piece of text took more than PIECE_WORK_MAX.
export class TooMuchWork extends Error {}

export class AnswerLexer extends Lexer {
  work = 0; // characters that the rules were tried on, from the first text on
  private sources: string[] = []; // the texts that are being read, each inside the one before
  private pieceStart = 0; // `work` where the piece began
  depth = 0; // of quotes and lists

  constructor() {
    super(options());
  }

  // The blocks of a text. The text inside each block is read later, by piece(); `sources` gets the text that each
  // token's `tokens` will hold.
  blocks(text: string, sources: WeakMap<Token[], string>): Token[] {
    const found = this.blockTokens(text, []);
    for (const { src, tokens } of this.inlineQueue) sources.set(tokens, src);
    this.inlineQueue = [];
    return found;
  }

  // The tokens of a piece of text; throws TooMuchWork.
  piece(text: string): Token[] {
    this.pieceStart = this.work;
    this.sources = [];
    Object.assign(this.state, { inLink: false, inRawBlock: false, linkEmitted: false, linkParenPossible: true });
    return this.inlineTokens(text, []);
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    if (this.sources.length >= INLINE_NESTING_MAX) {
      tokens.push({ type: "text", raw: text, text });
      return tokens;
    }
    this.sources.push(text);
    try {
      return super.inlineTokens(text, tokens);
    } finally {
      this.sources.pop();
    }
  }

  // A step of the inline rules at the beginning of `text`.
  step(text: string, cost = 1): void {
    this.work += text.length * cost;
    if (this.work - this.pieceStart > PIECE_WORK_MAX) throw new TooMuchWork();
  }

  // `masked` is the text that is being read, in which code and links are already letters.
  mask(masked: string): string {
    const text = this.sources.at(-1) ?? "";
    if (text.length !== masked.length || !/[$\\]/.test(text)) return masked;
    for (const [from, to] of mathsRanges(text)) masked = masked.slice(0, from) + "a".repeat(to - from) + masked.slice(to);
    return masked;
  }
}

class AnswerTokenizer extends Tokenizer {
  private get answer(): AnswerLexer { return this.lexer as AnswerLexer; }

  override blockquote(text: string): Tokens.Blockquote | undefined {
    return this.nested(() => super.blockquote(text));
  }

  override list(text: string): Tokens.List | undefined {
    return this.nested(() => super.list(text));
  }

  private nested<T>(read: () => T): T | undefined {
    if (this.answer.depth >= NESTING_MAX) return undefined;
    this.answer.depth += 1;
    try {
      return read();
    } finally {
      this.answer.depth -= 1;
    }
  }

  // Called once for every step of the block rules.
  override space(text: string): Tokens.Space | undefined {
    this.answer.work += text.length;
    return super.space(text);
  }

  override lheading(text: string): Tokens.Heading | undefined {
    const found = super.lheading(text.slice(0, SETEXT_MAX));
    if (!found || (found.raw.length >= SETEXT_MAX && text.length > SETEXT_MAX)) return undefined;
    // A block of maths ends the paragraph above it.
    const maths = blockMathsStart(found.raw);
    return maths >= 0 && blockMaths(text.slice(maths)) ? undefined : found;
  }

  override table(text: string): Tokens.Table | undefined {
    const found = super.table(text);
    return found && found.header.length <= TABLE_COLUMNS_MAX ? found : undefined;
  }

  // Called once for every step of the inline rules.
  override escape(text: string): Tokens.Escape | undefined {
    this.answer.step(text);
    return super.escape(text);
  }

  // Looking for the end of emphasis costs most of all.
  override emStrong(text: string, masked: string, before?: string): Tokens.Em | Tokens.Strong | undefined {
    const first = text.charCodeAt(0);
    if (first !== 42 && first !== 95) return undefined;
    this.answer.step(text, EMPHASIS_COST);
    return super.emStrong(text, masked, before);
  }

  // A tag is text, so it opens and closes nothing.
  override tag(text: string): Tokens.Tag | undefined {
    if (text.charCodeAt(0) !== 60) return undefined;
    const found = this.rules.inline.tag.exec(text);
    if (!found) return undefined;
    return { type: "html", raw: found[0], text: found[0], inLink: false, inRawBlock: false, block: false };
  }

  // Entities stay as they are: the text never goes through HTML.
  override inlineText(text: string): Tokens.Text | undefined {
    const found = this.rules.inline.text.exec(text);
    return found ? { type: "text", raw: found[0], text: found[0], escaped: false } : undefined;
  }
}

class AnswerHooks extends Hooks {
  override emStrongMask(this: unknown, masked: string): string {
    return (this as { lexer: AnswerLexer }).lexer.mask(masked);
  }
}

const NOTE = /^\[\^([^\s\]^]{1,64})\]/;
const NOTE_TEXT = /^ {0,3}\[\^([^\s\]^]{1,64})\]:[ \t]*([^\n]*(?:\n(?:[ \t]*\n)*(?: {4}|\t)[^\n]*)*)(?:\n+|$)/;

function options(): MarkedOptions {
  return {
    gfm: true, tokenizer: new AnswerTokenizer(), hooks: new AnswerHooks(),
    extensions: {
      renderers: {}, childTokens: {},
      block: [mathsBlock, noteBlock], startBlock: [blockMathsStart],
      inline: [mathsInline, noteInline], startInline: [(text) => text.search(/\$|\\[([]|\[\^/)],
    },
  };
}

function mathsBlock(text: string): Tokens.Generic | undefined {
  const found = blockMaths(text);
  return found && { type: "maths", raw: found.raw, text: found.source };
}

function mathsInline(this: unknown, text: string, before: Token[]): Tokens.Generic | undefined {
  const found = inlineMaths(text, before.at(-1)?.raw ?? "");
  return found && { type: "maths", raw: found.raw, text: found.source, isDisplay: found.isDisplay };
}

function noteInline(text: string): Tokens.Generic | undefined {
  const found = NOTE.exec(text);
  return found ? { type: "note", raw: found[0], label: found[1] } : undefined;
}

function noteBlock(this: { lexer: Lexer }, text: string): Tokens.Generic | undefined {
  const found = NOTE_TEXT.exec(text);
  if (!found) return undefined;
  const body = found[2].replace(/\n(?: {4}|\t)/g, "\n");
  const top = this.lexer.state.top;
  this.lexer.state.top = true;
  const tokens = this.lexer.blockTokens(body, []);
  this.lexer.state.top = top;
  return { type: "footnote", raw: found[0], label: found[1], tokens };
}
