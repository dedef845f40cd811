// highlight.js with sixteen languages. Its tree of tokens is read; the HTML that it also makes is not used.
import core from "highlight.js/lib/core";
import type { LanguageFn } from "highlight.js";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import type { CodeLeaf } from "./code_lines";

const languages: Record<string, LanguageFn> = { bash, c, cpp, csharp, css, diff, go, java, javascript, json, python, rust, sql, typescript,
  xml, yaml };
for (const [name, language] of Object.entries(languages)) core.registerLanguage(name, language);

// Takes the tokens in order: the interface that highlight.js asks of its option __emitter (src/lib/token_tree.js there).
class LeafEmitter {
  leaves: CodeLeaf[] = [];
  private scopes: string[] = [];

  addText(text: string): void {
    const scope = this.scopes.at(-1) ?? "";
    const last = this.leaves.at(-1);
    if (last?.scope === scope) last.text += text;
    else if (text !== "") this.leaves.push({ text, scope });
  }

  // "title.function" is coloured as a title.
  startScope(scope: string): void { this.scopes.push(scope.split(".")[0].replace(/[^a-z_-]/g, "")); }
  openNode(scope: string): void { this.startScope(scope); }
  endScope(): void { this.scopes.pop(); }
  closeNode(): void { this.endScope(); }
  __addSublanguage(inner: LeafEmitter): void { this.leaves.push(...inner.leaves); }
  toHTML(): string { return ""; }
  finalize(): void { this.scopes = []; }
}

core.configure({ __emitter: LeafEmitter } as unknown as Parameters<typeof core.configure>[0]);

export function highlight(code: string, language: string): CodeLeaf[] {
  const found = core.highlight(code, { language, ignoreIllegals: true }) as unknown as { _emitter: LeafEmitter };
  const leaves = found._emitter.leaves;
  // Whatever the rules of a language do, the code is shown as it is.
  return leaves.map(({ text }) => text).join("") === code ? leaves : [{ text: code, scope: "" }];
}
