// Conversations in groups as people look for them.
import type { Conversation } from "./types";

const DAY_MS = 86_400_000;

// `list` has the pinned ones first, then the newest first. The groups keep that order.
export function agesOf(list: readonly Conversation[], now_ms: number): { title: string; list: Conversation[] }[] {
  const today = new Date(now_ms).setHours(0, 0, 0, 0);
  const titleOf = ({ pinned, updated_ms: at }: Conversation): string => {
    if (pinned) return "Pinned";
    if (at >= today) return "Today";
    if (at >= today - DAY_MS) return "Yesterday";
    if (at >= today - 7 * DAY_MS) return "Last 7 days";
    return at >= today - 30 * DAY_MS ? "Last 30 days" : "Older";
  };
  const groups = new Map<string, Conversation[]>();
  for (const conversation of list) {
    const title = titleOf(conversation);
    const group = groups.get(title);
    if (group) group.push(conversation);
    else groups.set(title, [conversation]);
  }
  return [...groups].map(([title, list]) => ({ title, list }));
}
