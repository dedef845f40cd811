// The views that are loaded when they are opened. Chat is not among them: it is the first one that people see.
import type { Component } from "svelte";
import type { View } from "./router.svelte";

declare const GALLERY: boolean;

type Loader = () => Promise<{ default: Component }>;

export const lazyViews: Partial<Record<View, Loader>> = {
  cluster: () => import("../cluster/ClusterView.svelte"),
  models: () => import("../models/ModelsView.svelte"),
  activity: () => import("../activity/ActivityView.svelte"),
  connect: () => import("../connect/ConnectView.svelte"),
  ...(GALLERY ? { gallery: () => import("../gallery/GalleryView.svelte") } : {}),
};
