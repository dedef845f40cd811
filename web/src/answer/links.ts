// Which addresses of an answer become links: http, https and mailto, written out in full.
import { HREF_MAX } from "./limits";

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

// The address as the browser will read it, or null where the text must stay text.
export function safeHref(written: string): string | null {
  if (written.length === 0 || written.length > HREF_MAX) return null;
  // A relative address would lead into this page, so there is no base to complete one with.
  if (!URL.canParse(written)) return null;
  const url = new URL(written);
  // "https://bank.example@evil.example" shows one host and goes to the other.
  if (!SCHEMES.has(url.protocol) || url.username !== "" || url.password !== "") return null;
  return url.href;
}
