// Turns the tokens of blocks into Block nodes. Inline text is parsed here, once; results of the last update are kept.
import type { Links, Token, Tokens } from "marked";
import { pieces, plain, readPiece } from "./inlines";
import { AnswerLexer } from "./lexer";
import type { Block, Inline, ListItem } from "./tree";

export class BlockReader {
  private lexer = new AnswerLexer();
  private kept = new Map<string, Inline[]>(); // what the last update read
  private used = new Map<string, Inline[]>(); // what this one has read
  private parts = new WeakMap<object, unknown>(); // of long lists and tables, by their tokens
  readonly sources = new WeakMap<Token[], string>(); // the text that a token's `tokens` will hold

  get work(): number { return this.lexer.work; }

  // Starts an update. Other links make other text of the same source.
  begin(links: Links, areNew: boolean): void {
    this.lexer.tokens.links = links;
    this.kept = areNew ? new Map() : this.used;
    if (areNew) this.parts = new WeakMap();
    this.used = new Map();
  }

  block(token: Token): Block | undefined {
    const found = token as Tokens.Generic;
    switch (found.type) {
      case "paragraph": return { kind: "paragraph", pieces: this.text(found) };
      case "text": return { kind: "line", pieces: this.text(found) };
      case "heading": return { kind: "heading", depth: found.depth, pieces: this.text(found) };
      case "code": return code(found as Tokens.Code);
      case "blockquote": return { kind: "quote", blocks: this.blocks(found.tokens!) };
      case "list": return this.list(found as Tokens.List);
      case "table": return this.table(found as Tokens.Table);
      case "hr": return { kind: "rule" };
      case "maths": return { kind: "maths", source: found.text, raw: found.raw.trimEnd() };
      case "footnote": return { kind: "footnote", label: found.label, blocks: this.blocks(found.tokens!) };
      case "checkbox": return { kind: "line", pieces: [[{ kind: "check", isChecked: found.checked }]] };
      case "space": case "def": return undefined;
      default: return { kind: "plain", inlines: [plain(found.raw.replace(/\n+$/, ""))] }; // HTML
    }
  }

  blocks(tokens: Token[]): Block[] {
    const all: Block[] = [];
    for (const token of tokens) {
      const block = this.block(token);
      const last = all.at(-1);
      // A tight item with a box: the box stands in the item's first line.
      if (block?.kind === "line" && last?.kind === "line" && last.pieces[0][0]?.kind === "check" && last.pieces[0].length === 1) {
        all[all.length - 1] = { kind: "line", pieces: [[...last.pieces[0], ...block.pieces[0]], ...block.pieces.slice(1)] };
      } else if (block) {
        all.push(block);
      }
    }
    return all;
  }

  private text(token: Tokens.Generic): Inline[][] {
    const first = token.tokens?.[0];
    const source = this.sources.get(token.tokens!) ?? "";
    const all = pieces(source).map((piece) => this.piece(piece));
    return first?.type === "checkbox" ? [[{ kind: "check", isChecked: first.checked }, ...all[0]], ...all.slice(1)] : all;
  }

  private piece(text: string): Inline[] {
    const known = this.used.get(text) ?? this.kept.get(text) ?? readPiece(this.lexer, text);
    this.used.set(text, known);
    return known;
  }

  private list(token: Tokens.List): Block {
    const items = token.items.map((item) => this.part(item, `${token.loose}`, () => this.item(item, token.loose)));
    return { kind: "list", isOrdered: token.ordered, start: token.start === "" ? 1 : token.start, items };
  }

  private item(item: Tokens.ListItem, isLoose: boolean): ListItem {
    const blocks = this.blocks(item.tokens);
    return { blocks: isLoose ? blocks.map((block) => (block.kind === "line" ? { ...block, kind: "paragraph" } : block)) : blocks };
  }

  private table(token: Tokens.Table): Block {
    const cells = (row: Tokens.TableCell[]): Inline[][] =>
      this.part(row, "", () => row.map((cell) => this.cell(this.sources.get(cell.tokens) ?? "")));
    return { kind: "table", align: token.align, head: cells(token.header), rows: token.rows.map(cells) };
  }

  // The finished form of an item or a row, kept by its token, which stays the same while the list or table grows.
  private part<T>(token: object, key: string, make: () => T): T {
    const old = this.parts.get(token) as { key: string; made: T } | undefined;
    if (old?.key === key) return old.made;
    const made = make();
    this.parts.set(token, { key, made });
    return made;
  }

  private cell(source: string): Inline[] {
    const [first, ...rest] = pieces(source);
    return rest.length === 0 ? this.piece(first) : [...this.piece(first), plain(rest.join(""))];
  }
}

const CLOSED = /\n {0,3}(?:`{3,}|~{3,}) *\n*$/;

function code(token: Tokens.Code): Block {
  const isClosed = token.codeBlockStyle === "indented" || CLOSED.test(token.raw);
  const language = (token.lang ?? "").trim().split(/[\s,{]/, 1)[0].toLowerCase();
  return { kind: "code", language, text: token.text.replace(/\n$/, ""), isClosed };
}
