// The beginning of a growing text that is shown next: at most `most` characters more than the `shown` ones, and never half of a
// character.
export function nextPart(text: string, shown: number, most: number): string {
  const end = shown + most;
  if (shown > text.length || end >= text.length) return text;
  const isHalf = /[\uD800-\uDBFF]/.test(text[end - 1]);
  return text.slice(0, isHalf ? end + 1 : end);
}
