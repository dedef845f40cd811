// Fixed data for every component of an answer.
import type { TokenLogprob, ToolCall } from "../answer/types";

export const ANSWER = `## Reading a file line by line

Use a **buffered reader**. It keeps *one* line in memory, so the size of the file does not matter; see [the manual](https://docs.python.org/3/ "Python 3").
Inline \`code\`, ~~struck~~ text, and a line\\
break. A footnote[^1], an autolink https://example.org/a?b=c, and an image: ![a cat on a mat](https://example.org/cat.png)

\`\`\`python
from pathlib import Path

def count(path: Path) -> int:
    """Lines that are not empty."""
    with path.open(encoding="utf-8") as file:  # closed on the way out
        return sum(1 for line in file if line.strip() != "")

print(f"{count(Path('notes.txt'))} lines, {3.14:.1f}")
\`\`\`

1. Open the file.
2. Read a line:
   - trim it,
   - count it;
     1. once,
     2. and not again.
3. Close it.

- [x] small files
- [ ] files on a slow disk

| Way | Memory | Time for 1 GB |
| --- | :---: | ---: |
| \`read()\` | 1 GB | 0.8 s |
| line by line | **64 KB** | 1.1 s |
| \`mmap\` | what is touched | 0.6 s |

> A quote that goes on
> over two lines.
>
> > And one inside.

The mean is $\\bar{x} = \\frac{1}{n}\\sum_{i=1}^{n} x_i$, and it costs $5 and $6:

$$
\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt{\\pi}}{2}, \\qquad
\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}^{-1} = \\frac{1}{ad-bc} \\begin{pmatrix} d & -b \\\\ -c & a \\end{pmatrix}
$$

A formula that is wrong: $\\frac{1}{$ and \\(\\nope{x}\\).

<div onclick="alert(1)">HTML stays text</div>

---

[^1]: It stands where it was written.
`;

export const HIDDEN = "In prose \u202Ethis is turned\u202C and that is not. In `code\u202E it\u200B shows`:\n\n```js\nif (isAdmin\u2066) { // \u202E begin\n}\n```\n";

export const DEEP = `${"> ".repeat(20)}deep\n\n${"- ".repeat(20)}deeper\n`;

export const LONG_CODE = `\`\`\`rust\n${Array.from({ length: 90 }, (_, at) => `    let value_${at} = compute(${at}, "a long line that does not fit on a phone, number ${at}");`).join("\n")}\n\`\`\`\n`;

export const WIDE_TABLE = `| ${Array.from({ length: 12 }, (_, at) => `column ${at}`).join(" | ")} |\n|${" - |".repeat(12)}\n${`| ${Array.from({ length: 12 }, (_, at) => `cell ${at}`).join(" | ")} |\n`.repeat(4)}`;

export const SEAM_TEXT = "Once upon a time there was a little girl named Lily. She loved to play outside in the park.\n\n```py\nx = 1\ny = 2\n```\n";
export const SEAMS = [{ at: 41, label: "box lost, 1.3 s, 58 tokens computed again, text unchanged" },
  { at: 107, label: "mini lost, 0.4 s, 12 tokens computed again, text unchanged" }];

export const REASONING = "The user asks for a **count**. I could read the whole file, but it may be large.\n\n1. Open it.\n2. Read lines.\n";

export const CALLS: ToolCall[] = [
  { id: "a", name: "search_documents", arguments: '{"query":"placement of layers","limit":5,"filters":{"kind":["note","page"],"year":2026}}',
    result: '{"found":2,"titles":["Placement","What the planner knows"]}' },
  { id: "b", name: "run_command", arguments: '{"command":"ls -l /tmp","timeout_s":10}' },
  { id: "c", name: "write_file", arguments: '{"path":"notes.txt","text":"First line\\nSecond li' },
  { id: "d", name: "now", arguments: "{}" },
];

const WORDS = "Once upon a time , there was a little girl named Lily .\n She loved to play outside in the park".split(" ");

export const TOKENS: TokenLogprob[] = WORDS.map((word, at) => {
  const token = at === 0 || word === "," ? word : ` ${word}`;
  const own = [-0.001, -0.08, -0.4, -1.1, -2.2, -4.1][(at * 7) % 6];
  const rest = Math.log((1 - Math.exp(own)) * 0.6);
  return { token, logprob: own, top: [{ token, logprob: own }, { token: " other", logprob: rest }, { token: " some", logprob: rest - 1 }]
    .sort((a, b) => b.logprob - a.logprob) };
});

export const TIMES = Array.from({ length: 180 }, (_, at) => 24 + 6 * Math.sin(at / 5) + (at % 17 === 0 ? 14 : 0) + (at === 77 ? 640 : 0));
