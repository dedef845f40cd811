// The rights of this browser at the node, asked for at the start and again when a response says that a key is needed.
import { ask, json, type Session } from "../lib/api";

class PageSession {
  now = $state.raw<Session>({ control: false, key: false, keys_needed: false });
  isKnown = $state(false);

  async refresh(): Promise<void> {
    this.now = await json<Session>("GET", "/v1/session");
    this.isKnown = true;
  }

  // Trades a key for a cookie that scripts cannot read. Throws ApiError for an invalid one.
  async open(key: string): Promise<void> {
    await ask("POST", "/v1/session", {}, { headers: { authorization: `Bearer ${key}` } });
    await this.refresh();
  }
}

export const session = new PageSession();
