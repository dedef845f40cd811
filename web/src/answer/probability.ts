// How probable a token was, in words and in five steps of colour.

export const LEVELS = [
  { below: 0.05, name: "under 5 %" }, { below: 0.2, name: "5 to 20 %" }, { below: 0.5, name: "20 to 50 %" },
  { below: 0.9, name: "50 to 90 %" }, { below: Infinity, name: "over 90 %" },
] as const;

// A logarithm that is no number (some servers send null for a probability of zero) counts as zero.
export const probability = (logprob: number): number => (Number.isFinite(logprob) ? Math.min(1, Math.exp(logprob)) : 0);

export const levelOf = (logprob: number): number => LEVELS.findIndex(({ below }) => probability(logprob) < below);

export function percent(logprob: number): string {
  const value = probability(logprob) * 100;
  if (value >= 99.95) return "100 %";
  if (value >= 1) return `${value.toFixed(value >= 10 ? 0 : 1)} %`;
  return value < 0.01 ? "under 0.01 %" : `${value.toFixed(2)} %`;
}

// A token by a name that can be read: white space in words, hidden characters by code point.
export function tokenName(token: string): string {
  if (token === "") return "nothing";
  if (/^[ ]+$/.test(token)) return token.length === 1 ? "space" : `${token.length} spaces`;
  return token.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(/^ | $/g, "␣");
}
