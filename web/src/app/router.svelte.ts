// Hash routes: #/chat/ID?prompt=... has the view "chat", the rest ["ID"] and the query.

export const VIEWS = ["chat", "cluster", "models", "activity", "connect"] as const;
export type View = (typeof VIEWS)[number] | "gallery";

class Router {
  view = $state<View>("chat");
  rest = $state.raw<string[]>([]);
  query = $state.raw(new URLSearchParams());

  constructor() {
    addEventListener("hashchange", () => this.read());
    this.read();
  }

  private read(): void {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const [view, ...rest] = path.split("/").map(decode);
    this.view = [...VIEWS, "gallery"].includes(view) ? (view as View) : "chat";
    this.rest = rest.filter((part) => part !== "");
    this.query = new URLSearchParams(query ?? "");
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hrefOf(view: View, ...rest: string[]): string {
  return `#/${[view, ...rest.map(encodeURIComponent)].join("/")}`;
}

export function go(view: View, ...rest: string[]): void {
  location.hash = hrefOf(view, ...rest);
}

export const router = new Router();
