// Colours for code. highlight.js and its languages are loaded with the first block of a language that they know.
import type { CodeLeaf } from "./code_lines";

const ALIASES: Record<string, string> = {
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", "c++": "cpp", cc: "cpp", hpp: "cpp", cxx: "cpp", h: "cpp", "c#": "csharp", cs: "csharp",
  patch: "diff", golang: "go", js: "javascript", jsx: "javascript", mjs: "javascript", node: "javascript", jsonc: "json", json5: "json",
  py: "python", python3: "python", rs: "rust", postgresql: "sql", mysql: "sql", sqlite: "sql", ts: "typescript", tsx: "typescript",
  html: "xml", svg: "xml", xhtml: "xml", svelte: "xml", vue: "xml", yml: "yaml",
};
const LANGUAGES = new Set(["bash", "c", "cpp", "csharp", "css", "diff", "go", "java", "javascript", "json", "python", "rust", "sql",
  "typescript", "xml", "yaml"]);

type Engine = (code: string, language: string) => CodeLeaf[];

class Highlighting {
  private engine = $state.raw<Engine>();
  private asked = false;

  // The code in leaves, or undefined while there is nothing to colour it with.
  leaves(code: string, written: string): CodeLeaf[] | undefined {
    const language = ALIASES[written] ?? written;
    if (!LANGUAGES.has(language)) return undefined;
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
