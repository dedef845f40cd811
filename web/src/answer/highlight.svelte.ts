// Colours for code. highlight.js and its languages are loaded with the first block of a language that they know.
import type { CodeLeaf } from "./code_lines";

// Each language with the other names that answers give it.
const LANGUAGES: Record<string, string> = {
  bash: "sh shell zsh console", c: "", cpp: "c++ cc hpp cxx h", csharp: "c# cs", css: "", diff: "patch", go: "golang", java: "",
  javascript: "js jsx mjs node", json: "jsonc json5", python: "py python3", rust: "rs", sql: "postgresql mysql sqlite",
  typescript: "ts tsx", xml: "html svg xhtml svelte vue", yaml: "yml",
};
const languageOf = new Map(Object.entries(LANGUAGES).flatMap(([language, others]) =>
  [language, ...others.split(" ")].map((name): [string, string] => [name, language])));
languageOf.delete("");

type Engine = (code: string, language: string) => CodeLeaf[];

class Highlighting {
  private engine = $state.raw<Engine>();
  private asked = false;

  // The code in leaves, or undefined while there is nothing to colour it with.
  leaves(code: string, written: string): CodeLeaf[] | undefined {
    const language = languageOf.get(written);
    if (!language) return undefined;
    if (!this.engine && !this.asked) this.load();
    return this.engine?.(code, language);
  }

  // Without the colours the code still reads; the next block asks again.
  private load(): void {
    this.asked = true;
    import("./highlight").then(({ highlight }) => { this.engine = highlight; }, () => { this.asked = false; });
  }
}

export const highlighting = new Highlighting();
