// The colour of a model: one of the six hues of styles/tokens.css, the same in every view.
const HUES = 6;

// `names` are all models of the cluster; a model keeps its hue as long as their list stays the same.
export function hueOf(model: string, names: string[]): string {
  const at = [...new Set(names)].sort().indexOf(model);
  return at < 0 ? "var(--line-strong)" : `var(--hue-${(at % HUES) + 1})`;
}
