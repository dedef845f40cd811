// Answers of a wanted length by what they are made of.

function words(length, end = ", ") {
  let text = "";
  for (let at = 0; text.length < length; ++at) text += `word${at % 97} of **bold${at}** text and \`code${at % 13}\`${end}`;
  return text.slice(0, length);
}

const MIXED = (at) =>
  `## Part ${at}\n\nA paragraph with **bold**, *emphasis* and \`code\`, and a [link](https://example.org/${at}). ` +
  "It has a second sentence that is somewhat longer, so that it goes over two lines.\n\n" +
  `- one\n- two, with $x_${at}$\n- three\n\n\`\`\`python\ndef f_${at}(a, b):\n    """Adds."""\n` +
  `    return a + b + ${at}\n\`\`\`\n\n| a | b |\n| - | - |\n| ${at} | x |\n\n`;

function repeated(length, make) {
  let text = "";
  for (let at = 1; text.length < length; ++at) text += make(at);
  return text.slice(0, length);
}

export const SHAPES = {
  mixed: (length) => repeated(length, MIXED),
  paragraph: (length) => words(length),
  lines: (length) => words(length, ",\n"),
  paragraphs: (length) => repeated(length, (at) => `${words(400)} ${at}.\n\n`),
  code: (length) => repeated(length, (at) => (at === 1 ? "```python\n" : `value_${at} = compute(${at}, "text ${at}")  # a remark\n`)),
  table: (length) => repeated(length, (at) => (at === 1 ? "| a | b | c |\n| - | - | - |\n" : `| row ${at} | **${at}** | \`x\` |\n`)),
  list: (length) => repeated(length, (at) => `- item ${at} with **bold** text and \`code\`\n`),
  "loose list": (length) => repeated(length, (at) =>
    `${at}. Step ${at}:\n\n      A paragraph with *emphasis*.\n\n`.replace("      ", " ".repeat(`${at}. `.length))),
  "nested list": (length) => repeated(length, (at) => `- item ${at}\n  - one\n  - two **bold**\n`),
  quote: (length) => repeated(length, (at) => `> line ${at} of a long quote with **bold** text\n`),
  maths: (length) => repeated(length, (at) => `We have $a_{${at}}$ here:\n\n$$\nx_{${at}} = \\frac{a}{b}\n$$\n\n`),
};
