// LaTeX as MathML by Temml. Temml's own nodes set style attributes as text, which the page's policy forbids, and know links and images:
// so its tree is copied, with the elements, attributes and styles of formulas only, and styles are set through CSSOM.
import temml from "temml";
import font from "temml/dist/Temml.woff2";
import { MATHS_EXPANSIONS_MAX, MATHS_MAX, MATHS_NODES_MAX } from "./limits";
import type { MathsShown } from "./maths_engine.svelte";

export type MathsNode = string | {
  tag: string; attributes: [string, string][]; styles: [string, string][]; classes: string; children: MathsNode[];
};

// A node of Temml's tree (its src/mathMLTree.js and src/domTree.js).
interface TemmlNode {
  type?: string; text?: string; attributes?: Record<string, unknown>; style?: Record<string, unknown>; classes?: string[];
  children?: TemmlNode[];
}

const MATHML = "http://www.w3.org/1998/Math/MathML";
const TAGS = new Set(("math mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt mstyle mtable mtd " +
  "mtext mtr munder munderover msub msup msubsup none semantics merror").split(" "));
const ATTRIBUTES = new Set(("width height depth stretchy scriptlevel lspace rspace mathvariant displaystyle fence voffset form minsize " +
  "maxsize mathsize mathcolor mathbackground linethickness symmetric separator rowspacing movablelimits largeop display columnalign " +
  "accent accentunder dir intent columnspan rowspan").split(" "));
const STYLES = new Set(("border border-bottom border-left border-right border-top color background-color display font-weight font-style " +
  "font-family font-size height width justify-content left bottom right top margin-left margin-right math-depth math-style padding " +
  "padding-bottom padding-left padding-right padding-top position text-align transform vertical-align white-space").split(" "));
const SIZE_MAX_EM = 40;

let hasFont = false;

// Script letters and primes; where the file does not come, the browser's own font shows them.
function loadFont(): void {
  hasFont = true;
  const face = new FontFace("Temml", `url(${JSON.stringify(new URL(font, import.meta.url).href)})`);
  face.load().then(() => document.fonts.add(face), () => {});
}

export function readMaths(source: string, isDisplay: boolean): MathsShown {
  if (source.length > MATHS_MAX) return { problem: `it has more than ${MATHS_MAX} characters` };
  try {
    const made = temml.__renderToMathMLTree(source, {
      displayMode: isDisplay, throwOnError: true, trust: false, strict: false, maxSize: [SIZE_MAX_EM, SIZE_MAX_EM],
      maxExpand: MATHS_EXPANSIONS_MAX, wrap: "none",
    }) as TemmlNode;
    const tree = copyTree(made);
    return { tree, make: () => element(tree) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function copyTree(root: TemmlNode): MathsNode {
  let nodes = 0;
  const copy = (node: TemmlNode): MathsNode[] => {
    nodes += 1;
    if (nodes > MATHS_NODES_MAX) throw new RangeError(`it has more than ${MATHS_NODES_MAX} parts`);
    if (typeof node.text === "string") return [node.text];
    const children = (node.children ?? []).flatMap(copy);
    if (!node.type || !TAGS.has(node.type)) return children;
    const classes = (node.classes ?? []).filter(isClass).join(" ");
    return [{ tag: node.type, attributes: attributesOf(node), styles: stylesOf(node), classes, children }];
  };
  const made = copy(root);
  return made.length === 1 ? made[0] : { tag: "math", attributes: [], styles: [], classes: "", children: made };
}

const isClass = (name: string): boolean => /^(?:tml|wbk|ff)-[a-z-]+$|^(?:mathscr|mathcal|menclose|mathbf)$/.test(name ?? "");

function attributesOf({ attributes = {} }: TemmlNode): [string, string][] {
  return Object.entries(attributes).filter(([name]) => ATTRIBUTES.has(name)).map(([name, value]) => [name, String(value)]);
}

function stylesOf({ style = {}, attributes = {} }: TemmlNode): [string, string][] {
  const written = String(attributes.style ?? "").split(";").map((part) => part.split(":", 2).map((side) => side.trim()));
  const hyphened = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const named = Object.entries(style).map(([name, value]) => [hyphened(name), String(value)]);
  return [...written, ...named].filter(([name, value]) => STYLES.has(name) && value && !value.includes("(")) as [string, string][];
}

function element(node: MathsNode): Node {
  if (!hasFont) loadFont();
  if (typeof node === "string") return document.createTextNode(node);
  const made = document.createElementNS(MATHML, node.tag) as MathMLElement;
  for (const [name, value] of node.attributes) made.setAttribute(name, value);
  if (node.classes) made.setAttribute("class", node.classes);
  for (const [name, value] of node.styles) made.style.setProperty(name, value);
  made.append(...node.children.map(element));
  return made;
}
