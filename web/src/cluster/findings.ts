// Findings of `lockstep doctor --json` (docs/command-line.md).
export interface Finding { check: string; severity: "ok" | "note" | "problem"; sentence: string; mend: string }

const ORDER = ["problem", "note", "ok"];

// Problems first; within a severity the doctor's own order.
export function byUrgency(findings: Finding[]): Finding[] {
  return findings.map((finding, at) => ({ finding, at }))
    .sort((a, b) => ORDER.indexOf(a.finding.severity) - ORDER.indexOf(b.finding.severity) || a.at - b.at).map(({ finding }) => finding);
}
