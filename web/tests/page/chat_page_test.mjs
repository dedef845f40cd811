// The chat over a real node with two slowed ranks: everything that happens to an answer on its way.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { answers, assertQuiet, openBrowser, sendMessage, untilText } from "./browser.mjs";
import { startAlone, undisturbed, until } from "./node.mjs";
import { messagesOf, setSettings } from "./stored.mjs";

const MODEL = "stories260K";
const LENGTH = 120; // tokens of an answer: long enough to be met in its middle
let node;
let browser;

before(async () => {
  node = await startAlone();
  browser = await openBrowser(node);
});
after(async () => {
  await browser?.close();
  await node?.stop();
});

async function openChat(sampling = { temperature: "0", max_tokens: String(LENGTH) }) {
  const tab = await browser.open("#/chat");
  await setSettings(tab.page, sampling);
  return tab;
}

const last = (page) => answers(page).last();
const isWhole = (page, many = 1) => page.waitForFunction((count) => {
  const shown = document.querySelectorAll("article.answer");
  return shown.length === count && [...shown].every((one) => one.querySelector("button[aria-label='Copy the answer']"));
}, many);
// Its text alone: the line below says words too while the answer waits.
const hasBegun = (page, length = 20) => untilText(last(page).locator("div.answer"), (text) => text.length > length, "the answer begins");

// The text that a node without page, loss or reload gives for the same request.
async function expectedText(message, prompt) {
  return undisturbed(node, "/v1/completions", { ...message.body, prompt });
}

test("a message is sent, its answer streams, and is the text of an undisturbed request", async () => {
  const tab = await openChat();
  await sendMessage(tab.page, "Once upon a time");
  await tab.page.getByRole("button", { name: "Stop" }).waitFor();
  await hasBegun(tab.page);
  await isWhole(tab.page);
  const [question, answer] = await messagesOf(tab.page);
  assert.equal(question.text, "Once upon a time");
  assert.equal(answer.state, "done");
  assert.equal(answer.text, await expectedText(answer, question.text));
  assert.match(await last(tab.page).innerText(), new RegExp(`${LENGTH} tokens`));
  assertQuiet(tab);
});

test("stop ends an answer on the node too, and continue goes on with the same text", async () => {
  const tab = await openChat({ temperature: "0", max_tokens: "450" });
  await sendMessage(tab.page, "Ben and Sam went to the sea");
  await hasBegun(tab.page);
  await tab.page.getByRole("button", { name: "Stop" }).dispatchEvent("click"); // a click waits until nothing moves
  await tab.page.getByRole("button", { name: "Continue" }).waitFor();
  await until(async () => (await node.get("/cluster/requests")).requests.length === 0, "the node has no request left");
  const [, stopped] = await messagesOf(tab.page);
  assert.equal(stopped.state, "cut");
  await tab.page.getByRole("button", { name: "Continue" }).click();
  await tab.page.getByRole("button", { name: "Stop" }).waitFor();
  await tab.page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  const [, whole] = await messagesOf(tab.page);
  assert.ok(whole.text.startsWith(stopped.text) && whole.text.length > stopped.text.length);
  assertQuiet(tab);
});

// The last answer, once it is stored whole: it is shown a little earlier.
const stored = (page) => until(async () => (await messagesOf(page)).at(-1)?.usage && (await messagesOf(page)).at(-1),
  "the answer is stored");

test("while a message is typed, its cost is told: the tokens that the node then reads", async () => {
  const tab = await openChat();
  const { page } = tab;
  const cost = page.locator(".composer .cost");
  const field = page.getByRole("textbox", { name: "Message", exact: true });
  await field.fill("One day a bird");
  await untilText(cost, (text) => /^\d+ to read, time unknown$/.test(text), "no answer has told the speed yet");
  await field.press("Enter");
  await isWhole(page);
  await field.fill(" flew away and");
  const told = await untilText(cost, (text) => /\b[1-9]\d* cached, [\d.]+ s$/.test(text), "the answer tells what is cached, and the speed");
  await field.press("Enter");
  await isWhole(page, 2);
  const { usage } = await stored(page);
  assert.equal(told.slice(0, told.lastIndexOf(",")), `${usage.prompt_tokens - usage.cached_tokens} new + ${usage.cached_tokens} cached`);
  assert.ok(usage.cached_tokens > 0);
  assertQuiet(tab);
});

// The readings of the stream of events get a power, as of a machine that can measure it.
const givePower = (page, watts) => page.addInitScript((power_w) => {
  const ask = window.fetch;
  const powered = (event) => (event.startsWith("event: meters") ? event.replaceAll('{"node":', `{"power_w":${power_w},"node":`) : event);
  window.fetch = async (path, options) => {
    const response = await ask(path, options);
    if (path !== "/cluster/events") return response;
    let rest = "";
    return new Response(response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream({
      transform(piece, to) {
        const events = (rest + piece).split("\n\n");
        rest = events.pop();
        for (const event of events) to.enqueue(`${powered(event)}\n\n`);
      },
    })).pipeThrough(new TextEncoderStream()), response);
  };
}, watts);

test("where machines measure their power, the joules of an answer stand under it", async () => {
  const { page, faults } = await openChat();
  await givePower(page, 50);
  await page.reload();
  await page.locator("footer").getByText("50.0 W").waitFor();
  await sendMessage(page, "The sun and the moon");
  await isWhole(page);
  const { figures } = await stored(page);
  const seconds = figures.prompt_s + (figures.tokens - 1) / figures.tokens_s;
  assert.ok(seconds > 1 && Math.abs(figures.joules / seconds - 50) < 0.5, `${figures.joules} J in ${seconds} s`);
  assert.match(await last(page).innerText(), new RegExp(`1 machine, ${figures.joules.toFixed(figures.joules < 100 ? 1 : 0)} J`));
  assertQuiet({ faults });
});

test("an edited question and an answer again are versions beside the old ones", async () => {
  const tab = await openChat({ temperature: "0", max_tokens: "12" });
  const { page } = tab;
  await sendMessage(page, "The cat");
  await isWhole(page);
  await page.getByRole("article", { name: "You" }).hover();
  await page.getByRole("button", { name: "Edit and send again" }).click();
  await page.getByRole("textbox", { name: "Edit your message" }).fill("The dog");
  await page.getByRole("button", { name: "Send", exact: true }).first().click();
  await isWhole(page);
  const question = page.getByRole("article", { name: "You" });
  assert.match(await question.innerText(), /The dog/);
  await question.hover();
  await page.getByLabel("Version 2 of 2").waitFor();
  await page.getByRole("button", { name: "Earlier version" }).click();
  await question.getByText("The cat").waitFor();
  await last(page).hover();
  await page.getByRole("button", { name: "Answer again" }).click();
  await page.getByLabel("Version 2 of 2").nth(0).waitFor();
  await isWhole(page);
  const messages = await messagesOf(page);
  assert.deepEqual(messages.map(({ role }) => role).sort(), ["assistant", "assistant", "assistant", "user", "user"]);
  assertQuiet(tab);
});

test("a reload in mid-answer goes on, and the text is that of an undisturbed request", async () => {
  const tab = await openChat();
  await sendMessage(tab.page, "One day, a small bird");
  await hasBegun(tab.page, 40);
  await tab.page.reload();
  await hasBegun(tab.page, 40);
  await isWhole(tab.page);
  const [question, answer] = await messagesOf(tab.page);
  assert.equal(answer.state, "done");
  assert.equal(answer.text, await expectedText(answer, question.text));
  assertQuiet(tab);
});

test("two tabs show one answer as it grows, and a closed tab leaves it to the other", async () => {
  const tab = await openChat();
  await sendMessage(tab.page, "Tom had a red ball");
  await hasBegun(tab.page);
  const hash = new URL(tab.page.url()).hash;
  const other = await browser.open(hash, { context: tab.context });
  await hasBegun(other.page);
  await tab.page.close();
  await isWhole(other.page);
  const [question, answer] = await messagesOf(other.page);
  assert.equal(answer.state, "done");
  assert.equal(answer.text, await expectedText(answer, question.text));
  assertQuiet(other);
});

test("a worker killed in mid-answer: a seam, the text of an undisturbed request, and Check says same", async () => {
  let tab;
  for (let attempt = 0; attempt < 5; ++attempt) { // the answer has ended where a busy machine shows its beginning late
    tab = await openChat({ temperature: "0", max_tokens: "300" });
    await sendMessage(tab.page, "Ben and Sam went to the sea");
    await hasBegun(tab.page, 40);
    if ((await node.get("/cluster/requests")).requests.length > 0) break;
  }
  const { page } = tab;
  await node.killRank(MODEL, 1);
  await isWhole(page);
  const [question, answer] = await messagesOf(page);
  assert.equal(answer.state, "done");
  assert.equal(answer.text, await expectedText(answer, question.text));
  assert.equal(answer.seams?.length, 1, "the answer has one seam");
  assert.ok(answer.seams[0].at > 0 && answer.seams[0].at < answer.text.length);
  await page.getByText(answer.seams[0].label).first().waitFor();
  await last(page).hover();
  await page.getByRole("button", { name: "Check", exact: true }).click();
  await page.getByText("✓ same, bit for bit").waitFor();
  assertQuiet(tab);
});

test("an answer goes on while another conversation is open", async () => {
  const tab = await openChat();
  await sendMessage(tab.page, "Mia found a key");
  await hasBegun(tab.page);
  const hash = new URL(tab.page.url()).hash;
  await tab.page.getByRole("link", { name: "New" }).click();
  await tab.page.getByText(`${MODEL} answers.`).waitFor();
  await tab.page.goto(`${browser.address}/${hash}`);
  await isWhole(tab.page);
  const [question, answer] = await messagesOf(tab.page);
  assert.equal(answer.text, await expectedText(answer, question.text));
  assertQuiet(tab);
});
