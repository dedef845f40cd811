// JSON with a line for each member, also of a text that has not arrived in full. It changes white space only, and never what the text says.

const PRETTY_MAX = 100_000; // characters; longer text stays as it is written

export interface PrettyJson { text: string; isJson: boolean; isWhole: boolean }

export function prettyJson(written: string): PrettyJson {
  const isWhole = parses(written) || written.trim() === "";
  const isJson = isWhole || /^\s*[[{]/.test(written);
  return { text: isJson && written.length <= PRETTY_MAX ? indented(written) : written, isJson, isWhole };
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const TOKEN = /"(?:\\[^]|[^"\\])*"?|[{}[\],:]|[^\s"{}[\],:]+/g;

function indented(text: string): string {
  const tokens = text.match(TOKEN) ?? [];
  let made = "";
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(Math.min(depth, 40))}`;
  tokens.forEach((token, at) => {
    const before = tokens[at - 1];
    if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      made += before === "{" || before === "[" ? token : line() + token;
    } else {
      if (before === "{" || before === "[") made += line();
      made += token;
      if (token === "{" || token === "[") depth += 1;
      if (token === ",") made += line();
      if (token === ":") made += " ";
    }
  });
  return made;
}
