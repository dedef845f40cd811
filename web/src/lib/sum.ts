// The sum of what is known; undefined if nothing is.
export function sumOfKnown(values: readonly (number | null | undefined)[] | undefined): number | undefined {
  let sum: number | undefined;
  for (const value of values ?? []) if (value !== undefined && value !== null) sum = (sum ?? 0) + value;
  return sum;
}
