// A chat model that calls a tool: the call is shown and answered by hand, and the model goes on.
import assert from "node:assert/strict";
import test from "node:test";
import { answers, assertQuiet, openBrowser, sendMessage } from "./browser.mjs";
import { scriptedModel, startAlone } from "./node.mjs";

const TOOL = [{ name: "get_weather", description: "The weather in a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }];

test("a tool call is shown, answered by hand, and the model's last words come", async (run) => {
  const node = await startAlone(scriptedModel({ get_weather: { city: "Bern" } }), []);
  run.after(() => node.stop());
  const browser = await openBrowser(node);
  run.after(() => browser.close());
  const tab = await browser.open("#/chat");
  const { page } = tab;
  await page.getByText("scripted answers.").waitFor();
  await page.getByRole("button", { name: /^Settings/ }).click();
  await page.getByRole("textbox", { name: "Tools", exact: true }).fill(JSON.stringify(TOOL));
  await page.getByRole("textbox", { name: "Tools", exact: true }).press("Tab");
  await page.getByRole("button", { name: "Close the settings" }).click();
  await sendMessage(page, "How is the weather?");
  const calls = page.getByRole("list", { name: "Tool calls" });
  await calls.getByText("get_weather").first().waitFor();
  assert.match(await calls.innerText(), /Bern/);
  await calls.getByRole("textbox").fill("{\"sky\": \"blue\"}");
  await calls.getByRole("button", { name: "Send the result" }).click();
  await answers(page).last().getByText("The tool has answered, and the task is done.").first().waitFor();
  assertQuiet(tab);
});
