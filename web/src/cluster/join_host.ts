// The name or address of this node for `lockstep serve --join` on another machine: what this page was reached by, unless only the node's
// own machine knows it.
import { isLoopback } from "../connect/target";

export function joinHost(page: Pick<Location, "origin" | "hostname">, nodeName: string | undefined): string {
  return isLoopback(page.origin) ? nodeName || page.hostname : page.hostname;
}
