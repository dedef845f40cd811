// Formulas as trees of MathML. Temml is loaded with the first formula.
import type { MathsNode } from "./maths";

export type MathsShown = { tree: MathsNode; make(): Node } | { problem: string };
type Engine = (source: string, isDisplay: boolean) => MathsShown;

class MathsEngine {
  private engine = $state.raw<Engine>();
  private asked = false;

  // Undefined while the engine is on its way.
  read(source: string, isDisplay: boolean): MathsShown | undefined {
    if (!this.engine && !this.asked) this.load();
    return this.engine?.(source, isDisplay);
  }

  // Without it the source still reads; the next formula asks again.
  private load(): void {
    this.asked = true;
    import("./maths").then(({ readMaths }) => { this.engine = readMaths; }, () => { this.asked = false; });
  }
}

export const mathsEngine = new MathsEngine();
