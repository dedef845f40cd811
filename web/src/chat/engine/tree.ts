// The messages of a conversation as a tree: an edit or another answer is a sibling, and the leaf says which branch is shown.
// Every function returns what has changed and leaves its arguments as they are.
import type { Message } from "./types";

export type Tree = ReadonlyMap<string, Message>;

export const treeOf = (messages: Iterable<Message>): Tree => new Map([...messages].map((message) => [message.id, message]));

// From the first message to `leaf`. A parent that is missing (a damaged history) begins the branch.
export function pathTo(tree: Tree, leaf: string | null): Message[] {
  const path: Message[] = [];
  const seen = new Set<string>();
  for (let at = leaf === null ? undefined : tree.get(leaf); at && !seen.has(at.id);
    at = at.parent === null ? undefined : tree.get(at.parent)) {
    seen.add(at.id);
    path.push(at);
  }
  return path.reverse();
}

const byAge = (a: Message, b: Message): number => a.created_ms - b.created_ms || (a.id < b.id ? -1 : 1);

const isTop = (tree: Tree, message: Message): boolean => message.parent === null || !tree.has(message.parent);

// The children of `parent`, the oldest first; of null those without a parent.
export function childrenOf(tree: Tree, parent: string | null): Message[] {
  const children: Message[] = [];
  for (const message of tree.values()) {
    if (parent === null ? isTop(tree, message) : message.parent === parent) children.push(message);
  }
  return children.sort(byAge);
}

// The children of every message at once, for those who ask for many.
export function familyOf(tree: Tree): (parent: string | null) => Message[] {
  const families = new Map<string | null, Message[]>();
  for (const message of tree.values()) {
    const parent = isTop(tree, message) ? null : message.parent;
    families.set(parent, [...(families.get(parent) ?? []), message]);
  }
  for (const family of families.values()) family.sort(byAge);
  return (parent) => families.get(parent) ?? [];
}

export const siblingsOf = (tree: Tree, message: Message): Message[] =>
  childrenOf(tree, isTop(tree, message) ? null : message.parent);

// Where the branch through `message` ends: the newest child of the newest child.
export function leafBelow(tree: Tree, message: string): string {
  const family = familyOf(tree);
  let leaf = message;
  for (let next = family(leaf).at(-1); next; next = family(leaf).at(-1)) leaf = next.id;
  return leaf;
}

// All messages below `message`, without itself.
export function below(tree: Tree, message: string): Message[] {
  const family = familyOf(tree);
  const found: Message[] = [];
  const open = [message];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const child of family(at)) {
      found.push(child);
      open.push(child.id);
    }
  }
  return found;
}

export interface Removal { removed: Message[]; moved: Message[]; leaf: string | null }

// Takes out one message and nothing else: what stood below it then stands below its parent.
export function removeOne(tree: Tree, id: string, leaf: string | null): Removal {
  const message = tree.get(id);
  if (!message) return { removed: [], moved: [], leaf };
  const moved = childrenOf(tree, id).map((child) => ({ ...child, parent: message.parent }));
  if (leaf !== id) return { removed: [message], moved, leaf };
  const other = siblingsOf(tree, message).filter((sibling) => sibling.id !== id).at(-1);
  return { removed: [message], moved, leaf: other ? leafBelow(tree, other.id) : message.parent };
}

// Takes out a message and all that stands below it.
export function removeBranch(tree: Tree, id: string, leaf: string | null): Removal {
  const message = tree.get(id);
  if (!message) return { removed: [], moved: [], leaf };
  const removed = [message, ...below(tree, id)];
  const gone = new Set(removed.map((one) => one.id));
  if (leaf === null || !gone.has(leaf)) return { removed, moved: [], leaf };
  const other = siblingsOf(tree, message).filter((sibling) => sibling.id !== id).at(-1);
  return { removed, moved: [], leaf: other ? leafBelow(tree, other.id) : message.parent };
}

// The answers that are shown side by side with `message`: of one group and one parent.
export function groupOf(tree: Tree, message: Message): Message[] {
  if (message.group === undefined) return [message];
  return siblingsOf(tree, message).filter((sibling) => sibling.group === message.group);
}
