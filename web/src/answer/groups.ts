// Blocks in groups, so that the page looks at few of them when the last one grows.
import { GROUP_BLOCKS } from "./limits";

export function grouped<T>(before: T[][], all: T[]): T[][] {
  const groups: T[][] = [];
  for (let from = 0; from < all.length; from += GROUP_BLOCKS) {
    const group = all.slice(from, from + GROUP_BLOCKS);
    const old = before[groups.length];
    const isSame = old?.length === group.length && group.every((item, at) => item === old[at]);
    groups.push(isSame ? old : group);
  }
  return groups;
}
