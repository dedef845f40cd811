// Documents that try to run something, to leave the page or to fetch from elsewhere, in Chromium under the node's own policy: nothing of
// an answer runs, the policy has nothing to report, and the page holds the elements and attributes of answers only.
import assert from "node:assert/strict";
import test from "node:test";
import { openPage, takeReports } from "./browser.mjs";
import { loadTypeScript } from "./load.mjs";

const { hostileDocuments } = await loadTypeScript("hostile.ts");

let it;
test.before(async () => { it = await openPage("#/gallery/bench"); });
test.after(() => it.close());

// Runs in the page: what an answer must not hold.
function strangers() {
  const TAGS = new Set(("div p span h3 h4 h5 h6 ul ol li blockquote pre code table thead tbody tr th td strong em del br a sup bdi hr button svg " +
    "path article").split(" "));
  const ATTRIBUTES = new Set(("class dir href title target rel role aria-label aria-pressed aria-hidden aria-expanded tabindex start scope " +
    "data-bench").split(" "));
  const SVG = new Set(["width", "height", "viewBox", "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "aria-hidden",
    "d"]);
  const found = [];
  for (const node of document.querySelectorAll("[data-bench] *")) {
    const isMaths = node.namespaceURI.endsWith("MathML");
    const isSvg = node.namespaceURI.endsWith("svg");
    if (!isMaths && !TAGS.has(node.localName)) found.push(`<${node.localName}>`);
    for (const { name, value } of node.attributes) {
      const isKnown = isSvg ? SVG.has(name) : isMaths ? !/^on|href|src|^id$/i.test(name) : ATTRIBUTES.has(name);
      if (!isKnown) found.push(`<${node.localName} ${name}=${value}>`);
      if (name === "href" && !/^(https?:\/\/|mailto:)/.test(value)) found.push(value);
      if (name === "style" && /url|expression|image/i.test(value)) found.push(value);
    }
    const isOpening = node.localName === "a" && (node.rel !== "noopener noreferrer" || node.target !== "_blank");
    if (isOpening) found.push(`<a rel=${node.rel} target=${node.target}>`);
  }
  if (window.pwned) found.push("something ran");
  return found;
}

// Nothing of an answer may lie over the rest of the page.
function reachesOut() {
  const answer = document.querySelector("[data-bench]").getBoundingClientRect();
  const hit = document.elementFromPoint(40, 300);
  return hit?.closest("[data-bench]") || answer.left < 84 ? "the answer covers the rail of views" : "";
}

test("nothing of a hostile answer runs", async () => {
  const bench = await it.open("#/gallery/bench");
  const { page } = bench;
  await page.waitForFunction(() => window.lockstepBench);
  await page.evaluate(() => window.lockstepBench.show({ text: "```js\nlet a;\n```\n\n$x$", isGrowing: false }));
  await page.waitForSelector("[data-bench] math");
  await page.waitForSelector("[data-bench] .hl");
  assert.deepEqual(await takeReports(bench), []);
  const documents = hostileDocuments();
  assert.ok(documents.length >= 300);
  for (const { name, text } of documents) {
    await page.evaluate(async (shown) => {
      const bench = window.lockstepBench;
      bench.show({ text: shown, isGrowing: false });
      bench.show();
      bench.show({ text: "", isGrowing: true });
      for (const part of [0.2, 0.5, 0.8, 1]) {
        await bench.grow(shown.slice(0, Math.floor(shown.length * part)));
        await new Promise(requestAnimationFrame);
      }
      await bench.grow(shown, false);
    }, text);
    assert.deepEqual(await page.evaluate(strangers), [], name);
    assert.equal(await page.evaluate(reachesOut), "", name);
    assert.deepEqual(await takeReports(bench), [], name);
  }
});

// The checks above see what they are for.
test("a page where something runs is noticed", async () => {
  const bench = await it.open("#/gallery/bench");
  await bench.page.waitForFunction(() => window.lockstepBench);
  await bench.page.evaluate(() => {
    window.lockstepBench.show({ text: "x", isGrowing: false });
    const answer = document.querySelector("[data-bench]");
    const image = document.createElement("img");
    image.src = "https://evil.example/p.png";
    answer.append(image);
    answer.setAttribute("style", "position:fixed; inset:0");
    try {
      image.setAttribute("onerror", "window.pwned=1");
    } catch {
      // The policy refuses it, and reports it.
    }
  });
  await bench.page.waitForTimeout(500);
  assert.deepEqual((await bench.page.evaluate(strangers)).map((text) => text.split(" ")[0]).slice(0, 1), ["<img>"]);
  const reports = (await takeReports(bench)).map((text) => text.split(" ").slice(0, 2).join(" "));
  for (const expected of ["policy: img-src", "policy: require-trusted-types-for", "policy: style-src-attr"]) {
    assert.ok(reports.includes(expected), `${expected}: ${reports}`);
  }
});

test("nothing of it runs as reasoning, in a tool call or as tokens", async () => {
  const bench = await it.open("#/gallery/bench");
  const { page } = bench;
  await page.waitForFunction(() => window.lockstepBench);
  for (const { name, text } of hostileDocuments().filter((document) => document.name.endsWith(", plain"))) {
    await page.evaluate((shown) => {
      window.lockstepBench.show();
      window.lockstepBench.show({ text: shown, isGrowing: false, isEverywhere: true });
    }, text);
    await page.evaluate(() => {
      for (const button of document.querySelectorAll("[data-bench] button[aria-expanded=false]")) button.click();
    });
    const found = await page.evaluate(() => [...document.querySelectorAll("[data-bench] *")].filter((node) =>
      /^(script|img|iframe|object|embed|style|link|meta|base|video|audio|source|input)$/.test(node.localName) ||
      [...node.attributes].some((attribute) => attribute.name.startsWith("on") || /^\s*(javascript|data):/i.test(attribute.value) &&
        ["href", "src", "action", "formaction"].includes(attribute.name))).map((node) => node.localName));
    assert.deepEqual(found, [], name);
    assert.equal(await page.evaluate(() => window.pwned), undefined, name);
    assert.deepEqual(await takeReports(bench), [], name);
  }
});
