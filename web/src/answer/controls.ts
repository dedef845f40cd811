// Characters that are invisible or turn the direction of text (Unicode 16, UAX #9 and the property Default_Ignorable_Code_Point).
// They can hide what code does, so code shows their names; in prose they act inside an isolate only.

const BIDI = "\\u061C\\u200E\\u200F\\u202A-\\u202E\\u2066-\\u2069";
const INVISIBLE = "\\u00AD\\u034F\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180F\\u200B-\\u200D\\u2060-\\u2065\\u206A-\\u206F\\u3164" +
  "\\uFE00-\\uFE0F\\uFEFF\\uFFA0\\uFFF0-\\uFFFB\\u{1D173}-\\u{1D17A}\\u{E0000}-\\u{E0FFF}";
const OTHER = "\\u0000-\\u0008\\u000B-\\u001F\\u007F-\\u009F";
const turning = new RegExp(`[${BIDI}]`, "u");
const hidden = new RegExp(`[${BIDI}${INVISIBLE}${OTHER}]`, "u");
const hiddenAll = new RegExp(`[${BIDI}${INVISIBLE}${OTHER}]`, "gu");

export const turnsDirection = (text: string): boolean => turning.test(text);

interface CodePart { text: string; isControl: boolean }

// The text with every hidden character as a part of its own, by its code point.
export function codeParts(text: string): CodePart[] {
  if (!hidden.test(text)) return [{ text, isControl: false }];
  const parts: CodePart[] = [];
  let done = 0;
  for (const found of text.matchAll(hiddenAll)) {
    if (found.index > done) parts.push({ text: text.slice(done, found.index), isControl: false });
    parts.push({ text: codePointName(found[0]), isControl: true });
    done = found.index + found[0].length;
  }
  if (done < text.length) parts.push({ text: text.slice(done), isControl: false });
  return parts;
}

const codePointName = (character: string): string =>
  `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
