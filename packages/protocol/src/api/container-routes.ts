import { cacheListSchema } from "./cache.ts";
import * as image from "./image.ts";
import { json, type Route } from "./route.ts";
import { change, empty, look, SANDBOX } from "./route-parts.ts";
import { sandboxResourceSchema } from "./sandbox.ts";

/** Operations of providers of containers; images and caches are those of the node that answers. */
export const containerRoutes = {
  rebuildSandbox: {
    ...change,
    method: "POST",
    path: `${SANDBOX}/rebuild`,
    summary: "Replace a sandbox's container by one of what its image means now, with its volumes",
    access: "sandbox",
    answer: json(sandboxResourceSchema),
  },
  pullImage: {
    ...change,
    method: "POST",
    path: "/v1/images/pull",
    summary: "Have the node fetch an image, and be told how far it is",
    access: "sandboxes",
    body: json(image.pullImageBodySchema),
    answer: { kind: "events", schema: image.pullProgressSchema },
  },
  listCaches: {
    ...look,
    method: "GET",
    path: "/v1/caches",
    summary: "List the caches of your projects on this node",
    access: "read",
    answer: json(cacheListSchema),
  },
  clearCache: {
    ...empty,
    method: "DELETE",
    path: "/v1/caches/{project}/{cache}",
    summary: "Remove a cache that no sandbox has mounted",
    access: "sandboxes",
  },
} as const satisfies Record<string, Route>;
