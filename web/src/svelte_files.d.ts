// The TypeScript compiler sees components as values only; svelte's own compiler reads what is inside them.
declare module "*.svelte" {
  import type { Component } from "svelte";
  const component: Component<any>;
  export default component;
}
declare module "*.css";
declare module "*.woff2" {
  const address: string;
  export default address;
}
