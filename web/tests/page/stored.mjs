// Reads and writes the page's storage in the browser.
const DATABASE = "lockstep.chat";

// The messages of the conversation that is open, in the order of their time, as they are stored. A question and its answer may be
// of the same millisecond.
export function messagesOf(page) {
  return page.evaluate(async (name) => {
    const conversation = location.hash.split("/")[2];
    const database = await new Promise((done, fail) => {
      const request = indexedDB.open(name);
      request.onsuccess = () => done(request.result);
      request.onerror = () => fail(request.error);
    });
    const messages = await new Promise((done, fail) => {
      const request = database.transaction("messages").objectStore("messages").index("conversation").getAll(conversation);
      request.onsuccess = () => done(request.result);
      request.onerror = () => fail(request.error);
    });
    database.close();
    return messages.sort((a, b) => a.created_ms - b.created_ms || (a.parent === b.id ? 1 : -1));
  }, DATABASE);
}

// Conversations of one question and one answer each, as the page itself would store them.
export function storeConversations(page, many) {
  return page.evaluate(async ({ name, many }) => {
    const database = await new Promise((done, fail) => {
      const request = indexedDB.open(name);
      request.onsuccess = () => done(request.result);
      request.onerror = () => fail(request.error);
    });
    const all = database.transaction(["conversations", "messages"], "readwrite");
    const text = "The fox ran over the hill and looked at the moon. ".repeat(40);
    for (let at = 0; at < many; ++at) {
      const [id, time] = [`stored-${at}`, Date.now() - at * 3_600_000];
      const message = { conversation: id, created_ms: time, text: `${at} ${text}` };
      all.objectStore("messages").put({ ...message, id: `${id}-q`, parent: null, role: "user" });
      const answer = { id: `${id}-a`, parent: `${id}-q`, role: "assistant", created_ms: time + 1, model: "stories260K", state: "done" };
      all.objectStore("messages").put({ ...message, ...answer });
      all.objectStore("conversations").put({ id, title: `Conversation ${at}`, created_ms: time, updated_ms: time, pinned: false,
        leaf: `${id}-a`, models: ["stories260K"] });
    }
    await new Promise((done, fail) => { all.oncomplete = done; all.onerror = () => fail(all.error); });
    database.close();
  }, { name: DATABASE, many });
}

// Sampling fields of new conversations, by the drawer's own fields: { temperature: "0" }.
export async function setSettings(page, sampling) {
  await page.getByRole("button", { name: /^Settings/ }).click();
  for (const [name, value] of Object.entries(sampling)) {
    const field = page.locator(`#set-${name}`);
    await field.fill(value);
    await field.press("Tab");
  }
  await page.getByRole("button", { name: "Close the settings" }).click();
}
