// Blocks in groups, so that the page looks at few of them when the last one grows.
import { GROUP_BLOCKS } from "./limits";

// `before` is what the last call gave: a group that has not changed is the same array again.
export function grouped<T>(before: T[][], all: T[], size = GROUP_BLOCKS): T[][] {
  const groups: T[][] = [];
  for (let from = 0; from < all.length; from += size) {
    const group = all.slice(from, from + size);
    const old = before[groups.length];
    const isSame = old?.length === group.length && group.every((item, at) => item === old[at]);
    groups.push(isSame ? old : group);
  }
  return groups;
}
